import Glibc
package import PinfoldLoop

/// Why the server could not start.
package enum StartError: Error, Sendable {
  /// An address cannot be listened on.
  case cannotListen(address: String, IOError)
  /// The pipe of `tls.key_log` cannot be made or opened.
  case cannotOpenKeyLog(path: String, IOError)
  /// Another process runs on the state directory.
  case stateInUse(directory: String)
  /// The system gave no thread, loop or descriptor.
  case system(IOError)

  /// A sentence that names the place, and what would be right where the system's words do not say it.
  package var text: String {
    switch self {
    case .cannotListen(let address, let error):
      "cannot listen on \(address): \(error.text)" + (Self.advice(error, isFile: address.hasPrefix("unix:")) ?? "")
    case .cannotOpenKeyLog(let path, let error):
      "cannot open the key-log pipe \(path): \(error.text)"
        + (Self.advice(error, isFile: true) ?? "; it has to be a named pipe, or not to exist yet")
    case .stateInUse(let directory):
      "\(directory) is in use by another Pinfold: stop that one first, or give each a state_dir of its own"
    case .system(let error): "cannot start: \(error.text)"
    }
  }

  private static func advice(_ error: IOError, isFile: Bool) -> String? {
    guard case .system(let code) = error else { return nil }
    switch code {
    case ENOENT, ENOTDIR: return "; its directory has to be there"
    case EACCES, EPERM, EROFS:
      return isFile ? "; Pinfold's user has to be able to write there" : "; ports below 1024 need CAP_NET_BIND_SERVICE"
    case EADDRNOTAVAIL: return "; it has to be an address of this machine"
    default: return nil
    }
  }
}
