package import PinfoldCrypto

/// Why a record of the sealed cache cannot be read or kept. Each but `unlisted` and `locked` concerns one record only.
package enum CacheError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file is there and the system does not give it.
  case unreadable(FileError)
  /// Which records there are cannot be told: any may be there.
  case unlisted(FileError)
  /// There are records, and the key that opens them cannot be had.
  case locked(CryptoError)
  /// The file is altered, cut off, sealed under another key, or another record's.
  case broken(path: String)
  /// The record could not be written or removed: it is as it was before.
  case unwritable(FileError)
  /// The contents are over the kind's limit, in bytes.
  case tooLarge(CacheKind, count: Int)
  /// There are as many records of the kind as there may be.
  case full(CacheKind)
  /// The library that seals does not work.
  case crypto(CryptoError)

  /// Whether a record may be there all the same, and be as good as ever. To go on as if there were none would forget what
  /// it says.
  package var mayHideRecord: Bool {
    switch self {
    case .unreadable, .unlisted, .locked: true
    case .broken, .unwritable, .tooLarge, .full, .crypto: false
    }
  }

  /// One line that says what it means.
  package var description: String {
    switch self {
    case .unreadable(let error): "a cached record cannot be read: \(error)"
    case .unlisted(let error): "the records of the cache cannot be listed: \(error)"
    case .locked(let error): "the records of the cache cannot be opened: \(error.description)"
    case .broken(let path): "\(path): a cached record that is altered, cut off, or sealed under another key; not used"
    case .unwritable(let error): "a record cannot be cached: \(error); it is lost at a restart"
    case .tooLarge(let kind, let count):
      "a record of \(count) bytes cannot be cached: the limit of \(kind.rawValue) is \(kind.sizeLimit) bytes"
    case .full(let kind): "a record cannot be cached: there are \(kind.countLimit) of \(kind.rawValue) already"
    case .crypto(let error): "a cached record cannot be sealed or opened: \(error)"
    }
  }
}
