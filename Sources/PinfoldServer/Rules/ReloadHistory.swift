import PinfoldModel
import Synchronization

/// How the last reload went, for `/status`.
final class ReloadHistory: Sendable {
  struct Entry: Sendable {
    let at: Timestamp
    /// What was wrong, its beginning; `nil` when the new rules came into force.
    let error: String?
  }

  /// Bytes of an error that are kept: it may quote what somebody sent, and `/status` has to stay small enough to be read.
  private static let limit = 1024

  private let entry = Mutex<Entry?>(nil)

  var last: Entry? { entry.withLock { $0 } }

  func note(error: String?) {
    let kept = error.map { text in
      text.utf8.count <= Self.limit ? text : String(decoding: text.utf8.prefix(Self.limit), as: UTF8.self) + "…"
    }
    entry.withLock { $0 = Entry(at: .now, error: kept) }
  }
}
