package import PinfoldConfig
package import PinfoldModel

/// What a record is held against: the host it was asked for, the clock, and what its service is allowed.
package struct PinRecordTerms: Hashable, Sendable {
  /// The host the pins are wanted for.
  package var host: HostName
  /// The clock at the moment of judging.
  package var now: Timestamp
  /// When the bytes arrived: `now` for a fresh answer, the time kept beside them for one that is loaded again.
  package var received: Timestamp
  /// Bounds of the lifetime, in seconds; `min_ttl_seconds` and `max_ttl_seconds`.
  package var minTTLSeconds: Int64
  package var maxTTLSeconds: Int64
  /// Whether `fingerprint` records pass.
  package var allowUnboundSignatures: Bool

  /// How far a service's clock may be ahead, in seconds; as for bundles.
  package static let skewSeconds: Int64 = 300

  /// The terms of one service. `received` is `now` unless told.
  package init(host: HostName, now: Timestamp, received: Timestamp? = nil, service: PinServiceSection) {
    self.host = host
    self.now = now
    // A clock that was set back must not lengthen what it bounds.
    self.received = min(received ?? now, now)
    minTTLSeconds = Int64(service.minTTLSeconds)
    maxTTLSeconds = Int64(service.maxTTLSeconds)
    allowUnboundSignatures = service.allowUnboundSignatures
  }
}
