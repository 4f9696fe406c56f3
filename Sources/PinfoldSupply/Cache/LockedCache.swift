package import PinfoldCrypto

/// A sealed cache whose key cannot be had. None of its records can be read; that there are some of a kind shows in the
/// names of their files. So whoever would go on as if there were none asks here first.
package struct LockedCache: Sendable {
  private let directory: String
  private let cause: CryptoError

  /// The cache of a state directory. `cause`: why its key cannot be had.
  package init(stateDirectory: String, cause: CryptoError) {
    directory = SealedCache.directory(in: stateDirectory)
    self.cause = cause
  }

  /// Throws `locked` where there are records of this kind, and `unlisted` where that cannot be told. Does file work.
  package func requireNone(of kind: CacheKind) throws(CacheError) {
    guard SealedCache.records(kind, among: try SealedCache.entries(of: directory)).isEmpty else { throw .locked(cause) }
  }
}
