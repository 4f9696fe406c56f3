import PinfoldConfig
import PinfoldModel
import PinfoldSupply
import PinfoldTLS

/// Which bundles are fetched, how often, and on whose word a server is believed to be the one.
struct RefreshPlan: Sendable {
  /// Each is asked on its own.
  let urls: [HTTPURL]
  /// Between two requests, give or take a tenth.
  let interval: Duration
  /// Bytes of a bundle.
  let limit: Int
  /// TLS sessions under the authorities of the configuration.
  let security: ClientContext

  /// `nil` when the configuration names no URL. Throws when OpenSSL has no room.
  init?(
    _ source: BundleSource, _ configuration: Configuration, trusting authorities: TrustStore, file: String
  ) throws(FileErrors) {
    urls = source.urls
    guard !urls.isEmpty else { return nil }
    interval = .seconds(configuration.policy.refreshSeconds)
    limit = source.maxBytes
    do throws(TLSError) { security = try ClientContext(trusting: authorities) } catch {
      throw FileErrors(file: file, [Complaint(at: nil, path: "policy.bundles", error.description)])
    }
  }

  /// How long to wait after so many failures in a row: the interval after none, else a second, doubled each time, up
  /// to the interval. Drawn within a tenth to either side, so that a fleet does not come all at once.
  func pause(afterFailures count: Int, draw: Double = .random(in: 0.9...1.1)) -> Duration {
    guard count > 0 else { return interval * draw }
    let backOff = Duration.seconds(1 << min(count - 1, 17))
    return min(backOff, interval) * draw
  }
}
