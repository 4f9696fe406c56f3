import FoundationEssentials
import Glibc
import PinfoldTelemetry

/// A rendered record and the day it belongs to.
struct AuditEntry: Sendable {
  let day: Int64
  let bytes: [UInt8]
  let isDurable: Bool
}

/// The calls that a full or broken disk makes fail, so that tests can do so too.
struct AuditDisk: Sendable {
  /// write(2)
  var write: @Sendable (Int32, ArraySlice<UInt8>) -> Int = { descriptor, bytes in
    unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }
  /// fsync(2)
  var sync: @Sendable (Int32) -> Int32 = { fsync($0) }
}

/// Writes the daily files: appends, flushes to disk, turns to the next file at midnight, removes what is too old.
///
/// Has one owner and blocks; it must not be used by a worker.
final class AuditWriter {
  /// What came of a write.
  struct Outcome: Equatable {
    /// Entries from the start that are in the file, whole.
    var written: Int
    /// What went wrong; `nil` when all entries are written and the durable ones on disk.
    var error: String?
  }

  private let name: AuditFileName
  private let disk: AuditDisk
  private var day: Int64 = 0
  /// -1 while no file is open.
  private var descriptor: Int32 = -1
  /// Whether the file ends inside a line, as a crash or a full disk leaves it.
  private var isTorn = false

  init(_ name: AuditFileName, disk: AuditDisk = AuditDisk()) {
    self.name = name
    self.disk = disk
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Lets go of the file: the next write opens it by its name again.
  func reopen() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  /// Writes the entries in order, each to its day's file.
  func write(_ entries: [AuditEntry]) -> Outcome {
    var outcome = Outcome(written: 0, error: nil)
    while outcome.error == nil, outcome.written < entries.count {
      let rest = entries[outcome.written...]
      let day = entries[outcome.written].day
      let group = rest.prefix { $0.day == day }
      outcome.error = open(day) ?? append(group, &outcome.written)
    }
    return outcome
  }

  /// Appends entries of the open file's day; those written whole are added to `count`.
  private func append(_ group: ArraySlice<AuditEntry>, _ count: inout Int) -> String? {
    let lead: [UInt8] = isTorn ? [0x0a] : []
    let bytes = lead + group.flatMap(\.bytes)
    var done = 0
    var failure: String?
    while done < bytes.count, failure == nil {
      let result = disk.write(descriptor, bytes[done...])
      if result > 0 {
        done += result
      } else if result == 0 || errno != EINTR {
        failure = problem("write", result == 0 ? ENOSPC : errno)
      }
    }
    var end = lead.count
    var whole = 0
    for entry in group where end + entry.bytes.count <= done {
      end += entry.bytes.count
      whole += 1
    }
    // A line that was cut is written again, whole, behind a newline.
    if done > 0 { isTorn = end < done }
    count += whole
    let mustSync = group.prefix(whole).contains(where: \.isDurable)
    if mustSync, disk.sync(descriptor) != 0 {
      let code = errno
      // What the kernel could not write it may have dropped: begin with a descriptor that knows of no failure.
      reopen()
      return failure ?? problem("flush", code)
    }
    return failure
  }

  /// Opens the day's file, if it is not open already. Returns what went wrong.
  private func open(_ day: Int64) -> String? {
    if descriptor >= 0, day == self.day, !isRemoved { return nil }
    reopen()
    self.day = day
    isTorn = false
    // A pipe must not hang, a link must not lead elsewhere.
    let flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    let path = name.path(on: day)
    descriptor = unsafe Glibc.open(path, flags | O_CREAT | O_EXCL, 0o600)
    if descriptor >= 0 {
      // The umask may have taken more than it should.
      guard fchmod(descriptor, 0o600) == 0 else { return closing("set the mode of", errno) }
      return syncDirectory()
    }
    guard errno == EEXIST else { return problem("open", errno) }
    descriptor = unsafe Glibc.open(path, flags)
    guard descriptor >= 0 else { return problem("open", errno) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return closing("open", errno) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      reopen()
      return "\(path): not a regular file"
    }
    var last: UInt8 = 0x0a
    if status.st_size > 0, unsafe pread(descriptor, &last, 1, status.st_size - 1) != 1 { return closing("read", errno) }
    isTorn = last != 0x0a
    return nil
  }

  /// Whether somebody removed the file: what is written to it now would be gone with the process.
  private var isRemoved: Bool {
    var status = stat()
    return unsafe fstat(descriptor, &status) != 0 || status.st_nlink == 0
  }

  /// A new name is on disk only when its directory is (fsync(2), notes).
  private func syncDirectory() -> String? {
    let directory = unsafe Glibc.open(name.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return closing("open the directory of", errno) }
    defer { close(directory) }
    // Some file systems cannot flush a directory; there is nothing more to do on them.
    guard fsync(directory) == 0 || errno == EINVAL else { return closing("flush the directory of", errno) }
    return nil
  }

  private func closing(_ call: StaticString, _ code: Int32) -> String {
    reopen()
    return problem(call, code)
  }

  private func problem(_ call: StaticString, _ code: Int32) -> String {
    "cannot \(call) \(name.path(on: day)): \(SystemError.text(code))"
  }

  /// What became of the old files.
  struct Purge: Equatable {
    /// Paths of those that are gone, oldest first.
    var removed: [String] = []
    /// What went wrong, one line each.
    var problems: [String] = []
  }

  /// Removes files of our name whose day lies more than `retention` days before `today`.
  func purge(today: Int64, retention: Int) -> Purge {
    var purge = Purge()
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: name.directory)
    } catch {
      purge.problems.append("cannot look for old files in \(name.directory)")
      return purge
    }
    let (first, overflow) = today.subtractingReportingOverflow(Int64(retention))
    guard !overflow else { return purge }
    for file in names.sorted() {
      guard let day = name.day(of: file), day < first else { continue }
      let path = name.path(on: day)
      var status = stat()
      guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      if unsafe unlink(path) == 0 {
        purge.removed.append(path)
      } else {
        purge.problems.append("cannot remove \(path): \(SystemError.text(errno))")
      }
    }
    return purge
  }
}

/// The system's words for an errno.
enum SystemError {
  /// strerror_r(3); Swift's Glibc module has its POSIX form.
  static func text(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    guard unsafe strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
