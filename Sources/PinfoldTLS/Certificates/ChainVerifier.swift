package import PinfoldModel
package import PinfoldWire
import Synchronization

/// Judges certificate chains, remembering what it judged.
///
/// The checks are those of OpenSSL for a TLS server: trusted authorities first, purpose `sslserver`, validity at
/// `now`, at most `depthLimit` authorities, security level 1 (SSL_CTX_set_security_level(3): RSA of 1024 bits,
/// nothing signed with MD5 or SHA-1). No revocation: a pinned key is withdrawn through its pin.
///
/// Sendable: the cache is behind a `Mutex`, held for a look-up only, never while certificates are parsed.
package final class ChainVerifier: Sendable {
  /// Most certificates in one chain as sent. Real servers send two to five.
  package static let certificateLimit = 32
  /// Most bytes of certificates in one chain as sent: what OpenSSL's clients take (SSL_CTX_set_max_cert_list(3)).
  package static let byteLimit = 102_400
  /// Most authorities between leaf and root.
  package static let depthLimit = 10
  /// Longest life of a cached judgement, in seconds; the chain's own end of validity may be nearer.
  package static let cacheSeconds: Int64 = 3600
  /// Longest life of a cached judgement that did not verify, in seconds: a clock set right or a certificate that
  /// becomes valid shall not wait an hour.
  package static let failureCacheSeconds: Int64 = 60

  private struct Entry {
    let judgement: ChainJudgement
    let from: Timestamp
    let until: Timestamp
  }

  private let store: TrustStore
  /// The leaves of what was judged, and of handshakes whose chains are yet to be.
  package let leaves: LeafMemory
  private let cache: Mutex<BoundedCache<Digest256, Entry>>

  /// `capacity` judgements are kept at least, twice as many at most; each is about 4 KB, and 16 KB at most.
  package init(trusting store: TrustStore, capacity: Int = 1024) {
    self.store = store
    leaves = LeafMemory()
    cache = Mutex(BoundedCache(capacity: capacity))
  }

  /// Judges the certificates (DER, leaf first, as sent) of a server that was asked for `host`.
  ///
  /// A chain that does not verify is a judgement. Throws `tooLarge` beyond the limits above, `unreadable` for a
  /// certificate that cannot be read in one way only, and `failed` when OpenSSL is out of means; each is a refusal.
  package func judge(
    certificates: [ArraySlice<UInt8>], host: HostName, now: Timestamp
  ) throws(TLSError) -> ChainJudgement {
    guard !certificates.isEmpty else { throw .unreadable("a chain without certificates") }
    guard certificates.count <= Self.certificateLimit else {
      throw .tooLarge("\(certificates.count) certificates; at most \(Self.certificateLimit)")
    }
    let size = certificates.reduce(0) { $0 + $1.count }
    guard size <= Self.byteLimit else { throw .tooLarge("\(size) bytes of certificates; at most \(Self.byteLimit)") }
    let key = try Self.cacheKey(certificates, host)
    return try remembered(key, certificates[0].count, now) { () throws(TLSError) in
      try PathCheck(store: store, host: host, now: now, leaves: leaves).judge(certificates)
    }
  }

  /// The same for certificates in arrays of their own, as a probe's result has them.
  package func judge(certificates: [[UInt8]], host: HostName, now: Timestamp) throws(TLSError) -> ChainJudgement {
    try judge(certificates: certificates.map { $0[...] }, host: host, now: now)
  }

  /// Judges what a server showed in the clear: its certificates, or its raw public key.
  package func judge(_ flight: ServerFlight, host: HostName, now: Timestamp) throws(TLSError) -> ChainJudgement {
    guard let key = flight.rawPublicKey else {
      return try judge(certificates: flight.certificateBytes, host: host, now: now)
    }
    return try judge(rawPublicKey: Array(flight.bytes(key)), now: now)
  }

  /// Judges a raw public key (RFC 7250), a DER SubjectPublicKeyInfo: it has neither chain nor name.
  package func judge(rawPublicKey: [UInt8], now: Timestamp) throws(TLSError) -> ChainJudgement {
    guard rawPublicKey.count <= Self.byteLimit else {
      throw .tooLarge("\(rawPublicKey.count) bytes of public key; at most \(Self.byteLimit)")
    }
    return try remembered(Digest.sha256([0] + rawPublicKey), rawPublicKey.count, now) { () throws(TLSError) in
      ChainJudgement(
        leafKey: try LeafKey(subjectPublicKeyInfo: rawPublicKey), leafCertificateDigest: nil,
        chainError: "raw public key", nameMatches: false, builtChain: [],
        validUntil: Timestamp(seconds: now.seconds.addingReportingOverflow(Self.cacheSeconds).partialValue))
    }
  }

  /// Number of judgements kept now.
  package var cachedCount: Int { cache.withLock { $0.count } }

  /// - Parameter size: bytes of the leaf, whose key a judgement holds. Of a large one none is kept: a peer that shows a new
  ///   one each time could fill the memory.
  private func remembered(
    _ key: Digest256, _ size: Int, _ now: Timestamp, _ judge: () throws(TLSError) -> ChainJudgement
  ) throws(TLSError) -> ChainJudgement {
    // A clock that was set back makes an entry from the future: judged anew.
    if let entry = cache.withLock({ $0.value(for: key) }), entry.from <= now, now < entry.until {
      return entry.judgement
    }
    let judgement = try judge()
    guard size <= LeafMemory.sizeLimit else { return judgement }
    let life = judgement.chainVerified && judgement.nameMatches ? Self.cacheSeconds : Self.failureCacheSeconds
    let end = Timestamp(seconds: now.seconds.addingReportingOverflow(life).partialValue)
    let until = judgement.chainVerified ? min(end, judgement.validUntil) : end
    cache.withLock { $0.insert(Entry(judgement: judgement, from: now, until: until), for: key) }
    return judgement
  }

  /// SHA-256 over host and certificates, each with its length in front, so that no two inputs run together.
  private static func cacheKey(_ certificates: [ArraySlice<UInt8>], _ host: HostName) throws(TLSError) -> Digest256 {
    let digest = try RunningDigest()
    var complete: Bool
    switch host {
    case .name(var name):
      complete = name.withUTF8 { unsafe digest.add(length: $0.count, kind: 1, UnsafeRawBufferPointer($0)) }
    case .address(let address):
      let bytes = address.bytes
      complete = unsafe bytes.withUnsafeBytes { unsafe digest.add(length: bytes.count, kind: 2, $0) }
    }
    for certificate in certificates {
      let added = unsafe certificate.withUnsafeBytes {
        unsafe digest.add(length: certificate.count, kind: 3, $0)
      }
      complete = complete && added
    }
    guard complete, let key = digest.finish() else { throw .drained("EVP_DigestUpdate") }
    return key
  }
}

extension RunningDigest {
  fileprivate func add(length: Int, kind: UInt8, _ bytes: UnsafeRawBufferPointer) -> Bool {
    var head = UInt64(truncatingIfNeeded: length) << 8 | UInt64(kind)
    let framed = unsafe withUnsafeBytes(of: &head) { unsafe add($0) }
    return unsafe framed && add(bytes)
  }
}
