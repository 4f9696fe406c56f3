internal import CLinux

/// Why the system could not do what was asked of a socket. Every one of them ends the work it was needed for.
package enum IOError: Error, Hashable, Sendable {
  /// The deadline passed first.
  case timedOut
  /// The wait was given up by `StreamSocket.cancel()`, or the loop's owner is draining.
  case cancelled
  /// The socket was closed on this side.
  case closed
  /// The peer reset the connection, or went away before everything was written (ECONNRESET, EPIPE).
  case reset
  /// The socket watched meanwhile was closed or reset by its peer.
  case hungUp
  /// Nobody listens there (ECONNREFUSED).
  case refused
  /// No route (ENETUNREACH, EHOSTUNREACH and the like).
  case unreachable
  /// The process or the machine has no descriptor left (EMFILE, ENFILE), or no memory for a socket.
  case descriptorsExhausted
  /// The address is taken (EADDRINUSE).
  case addressInUse
  /// Anything else, by its errno.
  case system(Int32)

  /// Folds a negated errno, as the shims answer it.
  init(_ result: Int) {
    let code = Int32(clamping: -result)
    self =
      switch code {
      case ETIMEDOUT: .timedOut
      case ECONNRESET, EPIPE, ECONNABORTED: .reset
      case ECONNREFUSED: .refused
      case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL, EACCES, EPERM: .unreachable
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: .descriptorsExhausted
      case EADDRINUSE: .addressInUse
      default: .system(code)
      }
  }

  /// The same for what is to be made or listened on here: the operator has to mend it, and reads the system's own words.
  init(making result: Int) {
    self.init(result)
    switch self {
    case .addressInUse, .descriptorsExhausted: break
    default: self = .system(Int32(clamping: -result))
    }
  }

  /// A few words for a log line.
  package var text: String {
    switch self {
    case .timedOut: "timed out"
    case .cancelled: "cancelled"
    case .closed: "closed"
    case .reset: "connection reset"
    case .hungUp: "client went away"
    case .refused: "connection refused"
    case .unreachable: "unreachable"
    case .descriptorsExhausted: "out of descriptors"
    case .addressInUse: "address in use"
    case .system(let code): unsafe String(cString: pinfold_error_text(code))
    }
  }
}

/// Whether a shim's answer says that the call would have had to wait.
@inline(__always)
func wouldBlock(_ result: Int) -> Bool { result == -Int(EAGAIN) }
