/// What a record of the sealed cache holds. Each kind has limits of its own, so that no kind can crowd out another: the
/// hosts that clients think of must not cost the memory of a trusted device.
///
/// The raw value is part of file names: it is all that a directory without its key shows of a record.
package enum CacheKind: String, CaseIterable, Sendable {
  /// A record of a pin service, by domain.
  case pins
  /// A policy bundle that was fetched, by URL.
  case bundle
  /// A key that was trusted on first use or by pairing, by host and port.
  case trust
  /// What the breaker has to remember.
  case breaker
  /// The bundles that rotated the keys of policies, since the configured ones.
  case rotation

  /// Bytes of a record's contents: a fetched body of 64 KiB and what is noted beside it; a bundle far beyond the default
  /// of `policy.max_bundle_bytes`.
  package var sizeLimit: Int {
    switch self {
    case .pins: 80 << 10
    case .bundle, .rotation: 256 << 20
    case .trust: 16 << 10
    case .breaker: 4 << 20
    }
  }

  /// Records at a time.
  package var countLimit: Int {
    switch self {
    case .pins: 10_000
    case .bundle: 64
    case .rotation: 1
    case .trust: 10_000
    case .breaker: 16
    }
  }

  /// Whether the oldest records make room for a new one. Where not, a new one finds the kind full: what can be fetched
  /// again may go, what cannot may not. A record of a pin service can, but how new it was is kept with it.
  package var makesRoom: Bool {
    switch self {
    case .bundle: true
    case .pins, .rotation, .trust, .breaker: false
    }
  }

  /// Whether records that do not open under the key make room for a new one: those of another key are never read again. Of
  /// a trusted device even such a record keeps the next key from being learnt.
  var dropsDamaged: Bool {
    switch self {
    case .rotation, .breaker: true
    case .pins, .bundle, .trust: false
    }
  }
}
