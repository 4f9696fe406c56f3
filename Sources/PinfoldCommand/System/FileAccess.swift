import Glibc

/// Reads and writes whole files with the errors of the system in words.
enum FileAccess {
  /// Reads a regular file, pipe or device to its end. `limit` is in bytes; a longer file is an error, so that a
  /// wrong path such as `/dev/zero` ends.
  static func read(_ path: String, limit: Int) throws(FileFailure) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileFailure("read", path, code: errno) }
    defer { close(descriptor) }
    var contents: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw FileFailure("read", path, code: errno) }
      guard count > 0 else { return contents }
      contents += chunk[..<count]
      guard contents.count <= limit else {
        throw FileFailure(message: "cannot read \(quoted(path)): longer than \(limit) bytes")
      }
    }
  }

  /// Whether both paths lead to the same file that is there.
  static func areSame(_ one: String, _ other: String) -> Bool {
    var (first, second) = (stat(), stat())
    guard unsafe stat(one, &first) == 0, unsafe stat(other, &second) == 0 else { return false }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// Whose a file is.
  struct Owner: Equatable {
    let user: uid_t
    let group: gid_t
  }

  /// Makes a new file with exactly this mode, whatever the umask; an existing one (or a link) is left alone and an
  /// error. A file that could not be written whole, or given to `owner`, is removed again.
  static func create(_ path: String, _ bytes: [UInt8], mode: mode_t, owner: Owner? = nil) throws(FileFailure) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
    guard descriptor >= 0 else { throw FileFailure("create", path, code: errno) }
    do throws(FileFailure) {
      defer { close(descriptor) }
      if let owner, owner != Owner(user: geteuid(), group: getegid()) {
        guard fchown(descriptor, owner.user, owner.group) == 0 else {
          throw FileFailure("keep the owner of", path, code: errno)
        }
      }
      guard fchmod(descriptor, mode) == 0 else { throw FileFailure("set the mode of", path, code: errno) }
      try writeAll(bytes, to: descriptor, path)
      guard fsync(descriptor) == 0 else { throw FileFailure("write", path, code: errno) }
    } catch {
      unsafe unlink(path)
      throw error
    }
  }

  /// Puts a file in place of another, or where none was, in one step: readers see the old one or the new one.
  static func replace(_ path: String, _ bytes: [UInt8], mode: mode_t, owner: Owner? = nil) throws(FileFailure) {
    let temporary = "\(path).\(getpid()).tmp"
    do throws(FileFailure) {
      try create(temporary, bytes, mode: mode, owner: owner)
    } catch {
      // The temporary name would only puzzle whoever reads the message.
      throw FileFailure(message: error.message.replacing(escaped(temporary), with: escaped(path)))
    }
    guard unsafe rename(temporary, path) == 0 else {
      let failure = FileFailure("write", path, code: errno)
      unsafe unlink(temporary)
      throw failure
    }
  }

  private static func writeAll(_ bytes: [UInt8], to descriptor: Int32, _ path: String) throws(FileFailure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileFailure("write", path, code: errno) }
      rest = rest.dropFirst(count)
    }
  }
}

/// A file that could not be used: what was tried, the path, and the system's own words.
struct FileFailure: Error, Equatable, CustomStringConvertible {
  let message: String
  var description: String { message }

  init(message: String) { self.message = message }

  /// `code` is an errno, taken before anything else could change it.
  init(_ action: String, _ path: String, code: Int32) {
    message = "cannot \(action) \(quoted(path)): \(Self.text(code))"
  }

  /// strerror(3): one command runs in the process, on one thread at a time.
  static func text(_ code: Int32) -> String {
    guard let words = unsafe strerror(code) else { return "error \(code)" }
    return unsafe String(cString: words)
  }
}
