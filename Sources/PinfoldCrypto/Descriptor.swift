import CSodium

/// An open regular file, with its size in bytes and its permission bits when it was opened.
struct RegularFile: ~Copyable {
  let file: Descriptor
  let size: Int
  let mode: UInt32
}

/// A file descriptor owned once and closed when it goes away.
struct Descriptor: ~Copyable {
  let number: Int32

  /// open(2), with `O_CLOEXEC` and, for new files, mode 0600 whatever the umask says beyond it.
  init(_ path: String, flags: Int32) throws(FileError) {
    while true {
      let number = unsafe pinfold_open(path, flags | O_CLOEXEC, 0o600)
      if number >= 0 {
        self.number = number
        return
      }
      if pinfold_errno() != EINTR { throw .system(call: "open", path: path, code: pinfold_errno()) }
    }
  }

  deinit { close(number) }

  /// Writes everything and flushes it to disk.
  borrowing func writeDurably(_ bytes: Span<UInt8>, path: String) throws(FileError) {
    var done = 0
    while done < bytes.count {
      let count = unsafe bytes.extracting(done...).withUnsafeBufferPointer { buffer in
        unsafe write(number, buffer.baseAddress, buffer.count)
      }
      if count < 0, pinfold_errno() != EINTR { throw .system(call: "write", path: path, code: pinfold_errno()) }
      done += max(count, 0)
    }
    guard fsync(number) == 0 else { throw .system(call: "fsync", path: path, code: pinfold_errno()) }
  }
}
