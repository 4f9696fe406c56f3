import Glibc

/// Whose the state directory is.
enum StateOwner {
  /// Goes on as the owner of the directory when run by root: what root wrote there, the proxy could not read. Nothing
  /// else is changed; where there is no directory yet, it will be root's.
  static func assume(_ directory: String) throws(CommandFailure) {
    var status = stat()
    guard geteuid() == 0, unsafe stat(directory, &status) == 0, status.st_uid != 0 else { return }
    guard setegid(status.st_gid) == 0, seteuid(status.st_uid) == 0 else {
      throw CommandFailure(.failed, FileFailure("write as the owner of", directory, code: errno).message)
    }
  }
}
