package import PinfoldModel
import PinfoldPolicy

/// Whose signatures count: the configured keys, and the bundles that named others since, each signed by enough of the
/// keys before it and by enough of those it names (The Update Framework, "root role").
///
/// Keys are never stored: the bundles are, as they were received, and are verified again one after the other from the
/// configured keys on.
package struct TrustChain: Sendable {
  /// A bundle that rotated the keys.
  package struct Link: Sendable {
    /// The policy's version.
    package let version: UInt64
    /// The digest of its payload.
    package let digest: Digest256
    /// Whose signatures count from here on.
    package let keys: TrustedKeys
    /// The envelope as received.
    let envelope: [UInt8]
  }

  /// Rotations since the configured keys; past that the configuration is to be brought up to date. Each is read at every
  /// start.
  package static let limit = 64

  /// The keys of the configuration.
  package let configured: TrustedKeys
  /// The rotations since, oldest first.
  package private(set) var links: [Link] = []

  /// Nothing rotated yet.
  package init(_ configured: TrustedKeys) { self.configured = configured }

  /// Whose signatures count now.
  package var current: TrustedKeys { links.last?.keys ?? configured }

  /// The version of the last rotation; 0 without one. An older policy was signed under other keys.
  package var version: UInt64 { links.last?.version ?? 0 }

  /// Whether a payload is one of the rotations.
  package func contains(_ digest: Digest256) -> Bool { links.contains { $0.digest == digest } }

  /// Whether a bundle, verified under the current keys, names others. Its time does not matter: who was away while it
  /// held has to be able to follow.
  func isRotation(_ bundle: PolicyBundle) -> Bool {
    guard let successors = bundle.successors, !contains(bundle.payloadDigest) else { return false }
    return successors.digest != current.digest && bundle.document.version > version
  }

  /// Has the keys that a bundle names count from here on. It has to be one for which `isRotation` holds.
  mutating func append(_ bundle: PolicyBundle, envelope: [UInt8]) {
    guard let keys = bundle.successors, isRotation(bundle), links.count < Self.limit else { return }
    links.append(
      Link(version: bundle.document.version, digest: bundle.payloadDigest, keys: keys, envelope: envelope))
  }
}

// MARK: Keeping

extension TrustChain {
  /// The name of the record in the sealed cache.
  static let recordName = "policy"
  private static let firstLine = Array("pinfold-rotations v1\n".utf8)

  /// For the sealed cache: a line of ASCII, the 32 bytes of the configured keys' digest, and each envelope behind its
  /// length in 4 bytes, most significant first.
  var record: [UInt8] {
    var bytes = Self.firstLine + configured.digest.bytes
    for link in links {
      for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: link.envelope.count >> shift)) }
      bytes += link.envelope
    }
    return bytes
  }

  /// Replays what was kept, as far as each bundle holds under the keys before it. A record that began with other
  /// configured keys is none: the operator has begun anew.
  init(_ configured: TrustedKeys, record: [UInt8]) {
    self.init(configured)
    let start = Self.firstLine.count + Digest256.byteCount
    guard record.starts(with: Self.firstLine), record.count >= start,
      Digest256(record[Self.firstLine.count..<start]) == configured.digest
    else { return }
    var rest = record[start...]
    while rest.count >= 4, links.count < Self.limit {
      let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      guard count <= rest.count else { return }
      let envelope = Array(rest.prefix(count))
      rest = rest.dropFirst(count)
      guard let bundle = try? PolicyBundle(envelope: envelope, trust: current, file: ""), isRotation(bundle) else {
        return
      }
      append(bundle, envelope: envelope)
    }
  }
}
