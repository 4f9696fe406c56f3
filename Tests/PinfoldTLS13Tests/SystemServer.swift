import Foundation
import Glibc
import Testing

/// `openssl s_server` on loopback, with throw-away certificates: the genuine article to show a twin to.
final class SystemServer: Sendable {
  /// Where it listens.
  let port: UInt16
  private let process: Process
  private let log: URL

  private static var place: URL {
    FileManager.default.temporaryDirectory.appendingPathComponent("pinfold-twin-\(getpid())")
  }

  /// A certificate and key of each kind, made once per test run.
  static let folder: URL = {
    let folder = SystemServer.place
    atexit { try? FileManager.default.removeItem(at: SystemServer.place) }
    try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let subject = ["-nodes", "-subj", "/CN=api.pinfold.test", "-days", "2"]
    for (name, key) in [("ec", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]), ("rsa", ["rsa:2048"])] {
      let files = ["-keyout", folder.path + "/\(name).key", "-out", folder.path + "/\(name).pem"]
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
      process.arguments = ["req", "-x509", "-newkey"] + key + subject + files
      process.standardError = FileHandle.nullDevice
      try? process.run()
      process.waitUntilExit()
    }
    return folder
  }()

  struct NotStarted: Error {}

  /// Starts a server and waits until it says where it listens.
  init(_ arguments: [String]) throws {
    let folder = Self.folder
    process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments =
      [
        "s_server", "-accept", "127.0.0.1:0", "-cert", "\(folder.path)/ec.pem", "-key", "\(folder.path)/ec.key",
        "-dcert", "\(folder.path)/rsa.pem", "-dkey", "\(folder.path)/rsa.key",
      ] + arguments
    let output = Pipe()
    process.standardOutput = output
    log = folder.appendingPathComponent("server-\(UUID().uuidString).log")
    _ = FileManager.default.createFile(atPath: log.path, contents: nil)
    process.standardError = try FileHandle(forWritingTo: log)
    // s_server ends when its input does.
    process.standardInput = Pipe()
    try process.run()
    var text = ""
    while true {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw NotStarted() }
      text += String(decoding: data, as: UTF8.self)
      guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("ACCEPT") }), text.hasSuffix("\n"),
        let number = line.split(separator: ":").last.flatMap({ UInt16($0.trimmingCharacters(in: .whitespaces)) })
      else { continue }
      port = number
      // What it prints later is thrown away, or the pipe would fill up.
      output.fileHandleForReading.readabilityHandler = { handle in
        if handle.availableData.isEmpty { handle.readabilityHandler = nil }
      }
      return
    }
  }

  deinit { kill(process.processIdentifier, SIGKILL) }

  /// What it complained about so far.
  var complaints: String { (try? String(contentsOf: log, encoding: .utf8)) ?? "" }
}

/// A connection to loopback that blocks, five seconds at most.
final class Line {
  private let descriptor: Int32

  struct Broken: Error {}

  init(to port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Broken() }
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8]) throws {
    guard unsafe Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
      throw Broken()
    }
  }

  /// What came; empty at the end of the stream or of patience.
  func receive() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
    return Array(buffer.prefix(max(0, count)))
  }

  /// Reads until the server closes.
  func drain() -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let part = receive()
      if part.isEmpty { return all }
      all += part
    }
  }
}
