import PinfoldConfig
import PinfoldCrypto
import PinfoldSupply
import PinfoldTelemetry

extension Server {
  /// The sealed cache of this configuration. Without one everything goes on from memory, so that a missing key or a
  /// directory that cannot be made is a warning.
  static func openCache(_ configuration: Configuration, log: Logger) -> SealedCache? {
    var warnings: [String] = []
    let cache: SealedCache?
    do throws(CryptoError) {
      cache = try SealedCache(
        stateDirectory: configuration.stateDirectory, keyFile: configuration.cacheKeyFile, warnings: &warnings)
      cache?.removeLeftovers()
    } catch {
      cache = nil
      warnings.append("\(error.description); nothing is cached, and nothing that was is used")
    }
    for warning in warnings { log.write(.warning, "cache", [.init("warning", .text(warning))]) }
    return cache
  }
}
