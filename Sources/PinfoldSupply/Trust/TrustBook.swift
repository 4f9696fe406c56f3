package import PinfoldModel
package import PinfoldPolicy
import Synchronization

/// The keys that devices are trusted with: in memory for tunnels, in the sealed cache for the next start and for the
/// commands that pair and forget.
///
/// `key(of:)` may be asked anywhere. `load` and `learn` wait for the disk; they belong on one thread, which takes them one
/// after another, so that of two first keys one wins.
package final class TrustBook: Sendable {
  /// Devices that are trusted at a time, the limit of the cache.
  private static let limit = CacheKind.trust.countLimit

  private struct Entry: Sendable {
    var key: TrustedKey
    /// Whether the cache has it.
    var isKept: Bool
  }

  /// What came of a first key.
  package enum Lesson: Equatable, Sendable {
    /// It is trusted from now on. The text says why it will not survive a restart, if it will not.
    case learnt(warning: String?)
    /// Another key was trusted before: it was quicker.
    case known
    /// It cannot be known whether another key is trusted, or there is no room: no key is believed. The text says why.
    case refused(String)
  }

  /// A device whose key was paired, or forgotten, by another process.
  package struct Change: Equatable, Sendable {
    /// The device, and its key from now on; `nil`: it has none any more.
    package var authority: Authority
    package var key: TrustedKey?
  }

  /// What was there and could not be read when the cache was last loaded.
  private struct Gaps: Sendable {
    /// Files of records.
    var files: Set<String> = []
    /// Whether it is not even known which records there are.
    var isUnlisted = false
    /// Whether the system did not give something: no change of the directory tells when it will.
    var mayClose = false
  }

  private let cache: SealedCache?
  private let locked: LockedCache?
  private let entries = Mutex<[Authority: Entry]>([:])
  private let gaps = Mutex(Gaps())

  /// A book that knows nothing yet. Without a cache all trust ends with the process; `locked`: what there is instead.
  package init(cache: SealedCache?, locked: LockedCache? = nil) {
    self.cache = cache
    self.locked = locked
  }

  /// The key that this host and port is trusted with.
  package func key(of authority: Authority) -> TrustedKey? { entries.withLock { $0[authority]?.key } }

  /// Whether a record of this host and port, whose key is not in memory, is or may be there and cannot be read.
  package func isDamaged(_ authority: Authority) -> Bool {
    gaps.withLock { gaps in
      guard !gaps.isUnlisted else { return true }
      guard !gaps.files.isEmpty, let cache else { return false }
      return gaps.files.contains(cache.file(.trust, TrustRecord.name(authority)))
    }
  }

  /// Whether `load` may find more than the last time although nothing was written.
  package var mayFindMore: Bool { gaps.withLock(\.mayClose) }

  /// Trusts this key from now on, unless another one is trusted already, in memory or in the cache.
  package func learn(_ pin: Pin, of authority: Authority, at now: Timestamp) -> Lesson {
    guard key(of: authority) == nil else { return .known }
    do throws(CacheError) {
      if let kept = try kept(authority) {
        entries.withLock { $0[authority] = Entry(key: kept, isKept: true) }
        return .known
      }
    } catch {
      if case .locked = error { return .refused(error.description) }
      return .refused("\(error.description); pinfold trust forget \(authority.text) begins anew")
    }
    guard entries.withLock({ $0.count < Self.limit }) else {
      return .refused("\(Self.limit) devices are trusted already; pinfold trust forget makes room")
    }
    let key = TrustedKey(pin, since: now, origin: .firstUse)
    let warning = keep(key, authority)
    entries.withLock { $0[authority] = Entry(key: key, isKept: warning == nil) }
    return .learnt(warning: warning)
  }

  /// Takes what the cache holds: keys that were paired or forgotten since. Nothing is forgotten because it cannot be read.
  /// Returns what changed, in the order of the hosts, and one line for each thing that is wrong.
  package func load() -> (changes: [Change], warnings: [String]) {
    let found: [Authority: TrustedKey]
    let warnings: [String]
    do throws(CacheError) { (found, warnings) = try survey() } catch {
      gaps.withLock { gaps in (gaps.isUnlisted, gaps.mayClose) = (true, true) }
      return ([], ["\(error.description); devices whose keys are not known are refused"])
    }
    var changes: [Change] = []
    for (authority, key) in found where self.key(of: authority) != key {
      changes.append(Change(authority: authority, key: key))
    }
    for (authority, entry) in entries.withLock({ $0 }) where found[authority] == nil {
      if entry.isKept {
        // Only a record that is gone is forgotten, not one that is there and cannot be read.
        guard case .success(nil) = Result(catching: { () throws(CacheError) in try kept(authority) }) else { continue }
        changes.append(Change(authority: authority, key: nil))
      } else if keep(entry.key, authority) == nil {
        changes.append(Change(authority: authority, key: entry.key))
      }
    }
    let taken = changes
    return entries.withLock { entries in
      var told: [Change] = []
      for change in taken.sorted(by: { $0.authority.text < $1.authority.text }) {
        // What was only kept at last is no news.
        if entries[change.authority]?.key != change.key { told.append(change) }
        entries[change.authority] = change.key.map { Entry(key: $0, isKept: true) }
      }
      return (told, warnings)
    }
  }

  /// The keys that the cache holds, and one line for each record that cannot be read. Throws where none of them is known;
  /// what was damaged before is taken to be so still.
  private func survey() throws(CacheError) -> (found: [Authority: TrustedKey], warnings: [String]) {
    try locked?.requireNone(of: .trust)
    guard let cache else {
      gaps.withLock { $0 = Gaps() }
      return ([:], [])
    }
    let (records, refusals, broken) = try cache.survey(.trust)
    var gaps = Gaps(files: broken)
    for case .unreadable in refusals { gaps.mayClose = true }
    var warnings = refusals.map(\.description)
    var found: [Authority: TrustedKey] = [:]
    for record in records {
      guard let authority = Authority(record.name), TrustRecord.name(authority) == record.name,
        let key = TrustRecord.key(record.contents)
      else {
        warnings.append("the trusted key of \(record.name) is in a form that this version does not know; not used")
        gaps.files.insert(cache.file(.trust, record.name))
        continue
      }
      found[authority] = key
    }
    let now = gaps
    self.gaps.withLock { $0 = now }
    return (found, warnings)
  }

  private func kept(_ authority: Authority) throws(CacheError) -> TrustedKey? {
    try locked?.requireNone(of: .trust)
    guard let contents = try cache?.read(.trust, TrustRecord.name(authority)) else { return nil }
    guard let key = TrustRecord.key(contents) else { throw .broken(path: authority.text) }
    return key
  }

  /// Returns why the key could not be kept.
  private func keep(_ key: TrustedKey, _ authority: Authority) -> String? {
    guard let cache else { return "there is no sealed cache; the trusted key is lost at a restart" }
    do throws(CacheError) {
      try cache.write(.trust, TrustRecord.name(authority), TrustRecord.contents(key))
      return nil
    } catch {
      return error.description
    }
  }
}
