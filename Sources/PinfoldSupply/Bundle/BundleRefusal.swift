package import PinfoldConfig
package import PinfoldCrypto
package import PinfoldLoop
package import PinfoldModel
import PinfoldPolicy

/// Why a bundle does not come into force. It is refused whole.
package struct BundleRefusal: Error, Sendable, CustomStringConvertible {
  /// What is wrong.
  package enum Cause: Sendable {
    /// The file cannot be read; `tooLarge` when it is over `policy.max_bundle_bytes`.
    case file(FileError)
    /// Its envelope is malformed, or not signed by enough trusted keys.
    case envelope(EnvelopeError)
    /// It is signed, but its policy is invalid.
    case invalid(FileErrors)
    /// Its time is over.
    case expired(Timestamp)
    /// It is issued later than the clock plus the skew allows.
    case notYetIssued(Timestamp)
    /// An older version than the highest one ever accepted.
    case rollback(version: UInt64, highest: UInt64)
    /// The version in force, with other contents.
    case versionReused(UInt64)
    /// What was accepted before is not known, so that an older version could not be told.
    case stateUnreadable(StateError)
    /// It names new keys that are none.
    case keys(String)
    /// It names new keys, and too few of these have signed it.
    case rotation(EnvelopeError)
    /// There have been as many rotations since the configured keys as there may be.
    case rotationLimit(Int)
    /// Keys were rotated before, and the bundle that did it is gone or damaged: whose signature counts is not known.
    case rotationLost(String)
    /// It could not be fetched.
    case fetch(HTTPFetchError)
    /// It was not fetched yet.
    case notFetched
  }

  /// The bundle's path or URL.
  package let file: String
  /// What is wrong with it.
  package let cause: Cause

  /// That the bundle at a path or URL is refused, and why.
  package init(file: String, cause: Cause) {
    self.file = file
    self.cause = cause
  }

  /// Whether a newer bundle beside it makes it one that nobody has to mend.
  func isOutdated(by newest: PolicyBundle) -> Bool {
    if case .versionReused(let version) = cause { version < newest.document.version } else { false }
  }

  /// The word for log and audit.
  package var word: String {
    switch cause {
    case .file(.tooLarge): "too_large"
    case .file: "unreadable"
    case .envelope(.signatures): "signatures"
    case .envelope: "envelope"
    case .invalid: "invalid"
    case .expired: "expired"
    case .notYetIssued: "not_yet_issued"
    case .rollback: "rollback"
    case .versionReused: "version_reused"
    case .stateUnreadable: "state_unreadable"
    case .keys: "invalid"
    case .rotation, .rotationLimit: "rotation"
    case .rotationLost: "rotation_lost"
    case .fetch(.tooLarge): "too_large"
    case .fetch(let error): "fetch_\(error.step.rawValue)"
    case .notFetched: "not_fetched"
    }
  }

  /// One line, or one per mistake of an invalid policy.
  package var description: String {
    switch cause {
    case .file(let error): error.description
    case .envelope(let error): "\(file): \(error)"
    case .invalid(let errors): errors.text
    case .expired(let time): "\(file): expired at \(time.text)"
    case .notYetIssued(let time): "\(file): issued at \(time.text), which is still to come; check the clock"
    case .rollback(let version, let highest):
      "\(file): version \(version), but version \(highest) was accepted before; an older one never comes back"
    case .versionReused(let version):
      "\(file): version \(version) is in force with other contents; a changed policy needs a higher version"
    case .stateUnreadable(let error): "\(file): not taken, since an older version could not be told: \(error)"
    case .keys(let problem): "\(file): \(problem)"
    case .rotation(let error): "\(file): it names new keys and is not signed by enough of them: \(error)"
    case .rotationLimit(let limit):
      "\(file): the \(limit) rotations since the configured keys are all that can be; put the present keys into policy.trusted_keys"
    case .rotationLost(let what):
      "\(file): not taken: the keys were rotated before, and \(what); put the present keys into policy.trusted_keys, or the bundles that rotated them into policy.bundles"
    case .fetch(let error): "\(file): \(error.text)"
    case .notFetched: "\(file): not fetched yet"
    }
  }
}
