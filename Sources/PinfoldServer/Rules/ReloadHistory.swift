import PinfoldModel
import Synchronization

/// How the last reload went, for `/status`. A refresh that goes well does not make up for a SIGHUP that failed.
final class ReloadHistory: Sendable {
  enum Occasion { case hangUp, refresh }

  struct Entry: Sendable {
    let at: Timestamp
    /// What was wrong, its beginning; `nil` when the new rules came into force.
    let error: String?
  }

  /// Bytes of an error that are kept: it may quote what somebody sent, and `/status` has to stay small enough to be read.
  private static let limit = 1024

  private let entries = Mutex<(hangUp: Entry?, latest: Entry?)>((nil, nil))

  /// The last SIGHUP as long as it failed, else the last of all reloads.
  var last: Entry? { entries.withLock { $0.hangUp?.error == nil ? $0.latest : $0.hangUp } }

  /// Whether a SIGHUP failed and none has succeeded since.
  var isRefused: Bool { entries.withLock { $0.hangUp?.error != nil } }

  func note(_ occasion: Occasion, error: String?) {
    let kept = error.map { text in
      text.utf8.count <= Self.limit ? text : String(decoding: text.utf8.prefix(Self.limit), as: UTF8.self) + "…"
    }
    let entry = Entry(at: .now, error: kept)
    entries.withLock { entries in
      entries.latest = entry
      if occasion == .hangUp { entries.hangUp = entry }
    }
  }
}
