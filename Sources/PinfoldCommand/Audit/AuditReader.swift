import FoundationEssentials
import Glibc
import PinfoldTelemetry

/// Reads the audit's daily files, line by line: they may be larger than memory.
enum AuditReader {
  /// Bytes of one line. A record has far less: each of its values is cut at 1 KiB.
  static let lineLimit = 1 << 18

  /// The files that are there, by day. A directory that cannot be read is a failure.
  static func days(_ name: AuditFileName) throws(CommandFailure) -> [(day: Int64, path: String)] {
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: name.directory) else {
      throw CommandFailure(.failed, "cannot read the directory \(quoted(name.directory))")
    }
    return names.compactMap { name.day(of: $0) }.sorted().map { ($0, name.path(on: $0)) }
  }

  /// Gives each whole line to `body`, without its newline, with its number from 1 on. A last line without newline is
  /// being written, or was cut by a crash: it is no record. A line that is too long is given cut.
  static func lines(of path: String, _ body: ([UInt8], Int) -> Void) throws(FileFailure) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw FileFailure("read", path, code: errno) }
    defer { close(descriptor) }
    var line: [UInt8] = []
    var number = 1
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw FileFailure("read", path, code: errno) }
      guard count > 0 else { return }
      var rest = chunk[..<count]
      while let end = rest.firstIndex(of: 0x0a) {
        append(rest[..<end], to: &line)
        if !line.isEmpty { body(line, number) }
        line.removeAll(keepingCapacity: true)
        number += 1
        rest = rest[(end + 1)...]
      }
      append(rest, to: &line)
    }
  }

  private static func append(_ bytes: ArraySlice<UInt8>, to line: inout [UInt8]) {
    line.append(contentsOf: bytes.prefix(max(0, lineLimit - line.count)))
  }
}
