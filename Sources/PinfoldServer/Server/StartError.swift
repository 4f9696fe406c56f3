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

  /// A sentence that names the place.
  package var text: String {
    switch self {
    case .cannotListen(let address, let error): "cannot listen on \(address): \(error.text)"
    case .cannotOpenKeyLog(let path, let error):
      "cannot open the key-log pipe \(path): \(error.text); it has to be a named pipe, or not to exist yet"
    case .stateInUse(let directory):
      "\(directory) is in use by another Pinfold: stop that one first, or give each a state_dir of its own"
    case .system(let error): "cannot start: \(error.text)"
    }
  }
}
