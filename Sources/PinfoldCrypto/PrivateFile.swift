import CSodium

/// Files that only their owner should read: key files and the state directory's records.
///
/// Reads are bounded and never wait (a pipe in place of a file is refused); writes are whole or not at all.
package enum PrivateFile {
  /// What was read, and what the file's mode gives away.
  package struct Contents: Equatable, Sendable {
    /// All bytes of the file.
    package var bytes: [UInt8]
    /// The permission bits, such as 0o600.
    package var mode: UInt32
  }

  /// Reads a whole regular file of at most `limit` bytes. The size is looked at before anything is read. Symbolic
  /// links are followed: mounted configuration often consists of them.
  package static func read(_ path: String, limit: Int) throws(FileError) -> Contents {
    // One byte more than the limit is asked for below.
    let limit = min(limit, Int.max - 1)
    let opened = try openRegular(path, limit: limit)
    var bytes: [UInt8] = []
    // One byte more than the limit: a file that grew meanwhile is found out.
    let size = opened.size
    bytes.reserveCapacity(size + 1)
    while bytes.count <= limit {
      let room = min(max(size + 1 - bytes.count, 4096), limit + 1 - bytes.count)
      var failure: Int32 = 0
      var got = 0
      bytes.append(addingCapacity: room) { output in
        got = unsafe output.withUnsafeMutableBufferPointer { buffer, initialised in
          let count = unsafe CSodium.read(opened.file.number, buffer.baseAddress, buffer.count)
          if count < 0 { failure = pinfold_errno() }
          initialised = max(count, 0)
          return count
        }
      }
      if got == 0 { return Contents(bytes: bytes, mode: opened.mode) }
      if got < 0, failure != EINTR { throw .system(call: "read", path: path, code: failure) }
    }
    throw .tooLarge(path: path, limit: limit)
  }

  /// Throws what reading this path would throw at once: that it is missing, unreadable, or no regular file.
  package static func requireRegular(_ path: String) throws(FileError) { _ = try openRegular(path, limit: .max) }

  /// Makes a new file of mode 0600; an existing one is left alone and is an error (`isOccupied`).
  package static func create(_ path: String, bytes: Span<UInt8>) throws(FileError) {
    do {
      let file = try Descriptor(path, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
      do throws(FileError) { try file.writeDurably(bytes, path: path) } catch {
        // Half a key file is worse than none, and its name would block the next try.
        unsafe unlink(path)
        throw error
      }
    }
    try syncDirectory(of: path)
  }

  /// As above.
  package static func create(_ path: String, bytes: [UInt8]) throws(FileError) {
    try create(path, bytes: bytes.span)
  }

  /// Replaces a file as one step (mode 0600): a new file beside it, flushed, renamed over it, the directory flushed.
  /// After a crash either the old or the new contents are there. Callers of the same path must take turns, unless each
  /// names a `temporary` of its own in the same directory; it is `path` with `.new` behind it otherwise.
  package static func replace(_ path: String, bytes: [UInt8], temporary: String? = nil) throws(FileError) {
    let temporary = temporary ?? path + ".new"
    // A left-over of a crash.
    unsafe unlink(temporary)
    try create(temporary, bytes: bytes)
    guard unsafe rename(temporary, path) == 0 else {
      let code = pinfold_errno()
      unsafe unlink(temporary)
      throw .system(call: "rename", path: path, code: code)
    }
    try syncDirectory(of: path)
  }

  /// Removes a file for good: its directory is flushed. One that is not there is removed already.
  package static func remove(_ path: String) throws(FileError) {
    guard unsafe unlink(path) == 0 else {
      let error = FileError.system(call: "unlink", path: path, code: pinfold_errno())
      if error.isMissing { return }
      throw error
    }
    try syncDirectory(of: path)
  }

  /// Makes a directory of mode 0700 where none is. Its parent must exist. An existing one keeps its mode.
  package static func makeDirectory(_ path: String) throws(FileError) {
    guard unsafe mkdir(path, 0o700) != 0, pinfold_errno() != EEXIST else { return }
    throw .system(call: "mkdir", path: path, code: pinfold_errno())
  }

  /// The names in a directory, in no order; all of them or an error. None of "." and "..".
  package static func list(_ path: String) throws(FileError) -> [String] {
    guard let directory = unsafe opendir(path) else {
      throw .system(call: "opendir", path: path, code: pinfold_errno())
    }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let name = unsafe pinfold_next_name(directory) { names.append(unsafe String(cString: name)) }
    let code = pinfold_errno()
    guard code == 0 else { throw .system(call: "readdir", path: path, code: code) }
    return names.filter { $0 != "." && $0 != ".." }
  }

  static func openRegular(_ path: String, limit: Int) throws(FileError) -> RegularFile {
    // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
    let file = try Descriptor(path, flags: O_RDONLY | O_NONBLOCK)
    var status = stat()
    guard unsafe fstat(file.number, &status) == 0 else {
      throw .system(call: "fstat", path: path, code: pinfold_errno())
    }
    guard Int32(bitPattern: status.st_mode) & S_IFMT == S_IFREG else { throw .notRegular(path: path) }
    guard status.st_size <= limit else { throw .tooLarge(path: path, limit: limit) }
    return RegularFile(file: file, size: Int(status.st_size), mode: status.st_mode & 0o7777)
  }

  /// A rename or a new name is on disk only when its directory is (fsync(2), notes).
  private static func syncDirectory(of path: String) throws(FileError) {
    let parent = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let directory = try Descriptor(parent, flags: O_RDONLY | O_DIRECTORY)
    // Some file systems cannot flush a directory and say EINVAL; there is nothing more to do on them.
    guard fsync(directory.number) == 0 || pinfold_errno() == EINVAL else {
      throw .system(call: "fsync", path: parent, code: pinfold_errno())
    }
  }
}
