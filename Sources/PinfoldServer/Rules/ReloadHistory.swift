import PinfoldModel
import Synchronization

/// How the last reload went, for `/status`.
final class ReloadHistory: Sendable {
  struct Entry: Sendable {
    let at: Timestamp
    /// What was wrong; `nil` when the new rules came into force.
    let error: String?
  }

  private let entry = Mutex<Entry?>(nil)

  var last: Entry? { entry.withLock { $0 } }

  func note(error: String?) {
    entry.withLock { $0 = Entry(at: .now, error: error) }
  }
}
