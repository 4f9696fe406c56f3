import PinfoldConfig
import PinfoldCrypto
import PinfoldSupply

extension SealedCache {
  /// The cache as it is, for who looks for records of one kind; `nil` where there is none, which `steps` is told when that
  /// is for a key that cannot be had. Throws `locked` or `unlisted` where there may be records, and no key to open them.
  static func lookup(
    of kind: CacheKind, _ configuration: Configuration, _ steps: inout [String]
  ) throws(CacheError) -> SealedCache? {
    let directory = configuration.stateDirectory
    do throws(CryptoError) {
      return try existing(stateDirectory: directory, keyFile: configuration.cacheKeyFile)
    } catch {
      try LockedCache(stateDirectory: directory, cause: error).requireNone(of: kind)
      steps.append("the cache cannot be read: \(error.description)")
      return nil
    }
  }
}
