import PinfoldModel
import Synchronization

/// Remembers leaf certificates and their keys by the bytes they came in: a busy host's leaf is read, and its key made
/// ready to verify, once and not once a handshake. OpenSSL 3 takes as long to read a certificate as to verify by it.
///
/// Sendable: the cache is behind a `Mutex`, held for a look-up only, never while a certificate is read.
package final class LeafMemory: Sendable {
  /// A certificate that was read, with its key.
  package struct Leaf: Sendable {
    /// The certificate.
    package let certificate: Certificate
    /// Its key; `unusable` where this OpenSSL cannot use it.
    package let key: LeafKey
  }

  /// Largest certificate that is remembered, in bytes: real leaves have 1–3 KB. Larger ones are read each time, so that
  /// nobody can fill the memory with them.
  package static let sizeLimit = 8192

  private let cache: Mutex<BoundedCache<Digest256, Leaf>>

  /// `capacity` leaves are kept at least, twice as many at most; each takes about three times its size.
  package init(capacity: Int = 512) {
    cache = Mutex(BoundedCache(capacity: capacity))
  }

  /// The leaf in these DER bytes. What cannot be read is remembered as little as it is believed: throws what
  /// `Certificate(der:)` does.
  package func leaf(_ der: [UInt8]) throws(TLSError) -> Leaf {
    guard der.count <= Certificate.byteLimit else {
      throw .tooLarge("certificate of \(der.count) bytes; at most \(Certificate.byteLimit)")
    }
    let digest = try Digest.sha256(der)
    if let known = cache.withLock({ $0.value(for: digest) }) { return known }
    let certificate = try Certificate(der: der)
    let leaf = Leaf(certificate: certificate, key: try LeafKey(of: certificate))
    guard der.count <= Self.sizeLimit else { return leaf }
    // Two threads may have read the same one: the first stays, so that its key is warmed up by both.
    return cache.withLock { cache in
      if let known = cache.value(for: digest) { return known }
      cache.insert(leaf, for: digest)
      return leaf
    }
  }

  /// Number of leaves kept now.
  package var count: Int { cache.withLock { $0.count } }
}
