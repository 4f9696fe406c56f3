import PinfoldModel
import PinfoldPolicy

/// Whether tunnels can be served now (`/readyz`).
enum Readiness: Equatable {
  case ready
  /// Not now; the text says why.
  case notReady(String)
  case draining

  init(_ policy: PolicySnapshot, at now: Timestamp, isDraining: Bool) {
    if isDraining {
      self = .draining
      return
    }
    switch policy.standing {
    case .unavailable: self = .notReady("no policy bundle was acceptable: everything is blocked")
    case .document(let document) where now >= document.expiresAt:
      self = .notReady("the policy expired at \(document.expiresAt.text): its hosts are blocked")
    case .document, .notConfigured: self = .ready
    }
  }

  /// The word of `/status`.
  var word: String {
    switch self {
    case .ready: "serving"
    case .notReady: "not_ready"
    case .draining: "draining"
    }
  }

  /// Why not, for people.
  var detail: String? {
    switch self {
    case .ready: nil
    case .notReady(let text): text
    case .draining: "draining"
    }
  }
}
