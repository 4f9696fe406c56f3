import CSodium

/// A lock that one process at a time can have (flock(2)), from when it is taken until this object goes. The kernel ends it
/// with the process, however that ends. Its file is empty and stays: who removed it would let a second one in.
package final class FileLock: Sendable {
  private let file: Descriptor

  /// Takes the lock on this file, which is made (mode 0600) where it is missing; `nil` while another one has it. Throws
  /// where the file cannot be had, or its file system knows no locks. A symbolic link is not followed.
  package init?(_ path: String) throws(FileError) {
    // For writing: NFS gives no lock of one's own otherwise.
    file = try Descriptor(path, flags: O_RDWR | O_CREAT | O_NOFOLLOW)
    while flock(file.number, LOCK_EX | LOCK_NB) != 0 {
      let code = pinfold_errno()
      if code == EWOULDBLOCK { return nil }
      guard code == EINTR else { throw .system(call: "flock", path: path, code: code) }
    }
  }
}
