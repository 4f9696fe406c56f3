import PinfoldConfig
import PinfoldCrypto
import PinfoldSupply

extension RulesLoader {
  /// The sealed cache of this configuration. Where it cannot be opened everything that it cannot have a say in goes on
  /// from memory, so that a missing key or a directory that cannot be made is a warning.
  static func openCache(
    _ configuration: Configuration
  ) -> (cache: SealedCache?, locked: LockedCache?, warnings: [String]) {
    var warnings: [String] = []
    do throws(CryptoError) {
      let cache = try SealedCache(
        stateDirectory: configuration.stateDirectory, keyFile: configuration.cacheKeyFile, warnings: &warnings)
      cache.removeLeftovers()
      return (cache, nil, warnings)
    } catch {
      let locked = LockedCache(stateDirectory: configuration.stateDirectory, cause: error)
      return (nil, locked, warnings + ["\(error.description); nothing is cached, and nothing that was is used"])
    }
  }
}
