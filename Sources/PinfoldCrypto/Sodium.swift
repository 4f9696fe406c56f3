import CSodium

/// libsodium's set-up, done once per process however many threads ask.
package enum Sodium {
  /// sodium_init(3): 0 when set up now, 1 when it was before, -1 when it cannot be.
  private static let isReady = sodium_init() >= 0

  /// Throws `sodiumUnavailable` when libsodium cannot be used. Call it first at start, so that the failure has one
  /// place; everything in this module that needs it asks again.
  package static func start() throws(CryptoError) {
    guard isReady else { throw .sodiumUnavailable }
  }
}
