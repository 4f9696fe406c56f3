/// Which `host` label a tunnel counts under.
package enum HostLabel: Hashable, Sendable {
  /// A host that a rule names exactly, or that was seen under a pattern rule: its own label while there is room.
  case pinned(String)
  /// A host without rule and pins: always `other`.
  case unpinned

  /// The label of everything that has none of its own.
  static let other = "other"
}

/// The `state` label of `pinfold_enforcement`: the raw values are those of the policy's enforcement states. A blocked
/// host is in none of them.
package enum EnforcementLabel: String, CaseIterable, Sendable {
  case enforce, report, suspended, disabled
}

/// What the breaker did: the `action` label of `pinfold_breaker_trips_total`.
package enum BreakerAction: String, CaseIterable, Sendable {
  case alert, suspend
}

/// How a handshake of the proxy's own was made: the `kind` label of `pinfold_probe_total` and of decision lines.
package enum ProbeKind: String, CaseIterable, Sendable {
  /// The app's hello with key shares of our own.
  case twin
  /// A hello made by OpenSSL with the app's parameters.
  case openssl
}

/// The `result` label of probes and policy reloads.
package enum AttemptResult: String, CaseIterable, Sendable {
  case success, failure
}

/// The `result` label of `pinfold_cache_total`.
package enum CacheResult: String, CaseIterable, Sendable {
  case hit, miss, stale
}

/// The `result` label of `pinfold_pin_fetches_total`.
package enum PinFetchResult: String, CaseIterable, Sendable {
  /// A record was received and verified.
  case success
  /// No connection, or it broke.
  case unreachable
  /// The deadline passed.
  case timeout
  /// Another status than 200, redirects included.
  case status
  /// The body is over its limit.
  case oversized
  /// The body is no record, or one of another host.
  case malformed
  /// The signature is not one of the trusted keys'.
  case untrusted
  /// The record is expired already, not valid yet, or older than one accepted before.
  case expired
}
