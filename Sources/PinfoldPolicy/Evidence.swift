package import PinfoldModel

/// What an inspection found out about the peer, as values: no handle, no error.
package struct Evidence: Sendable {
  /// One certificate of the chain that was built, as hashes.
  package struct Element: Hashable, Sendable {
    /// SHA-256 of the SubjectPublicKeyInfo, and of the whole certificate.
    package var publicKey: Digest256
    package var certificate: Digest256

    /// A certificate by its two hashes.
    package init(publicKey: Digest256, certificate: Digest256) {
      self.publicKey = publicKey
      self.certificate = certificate
    }
  }

  /// What came of verifying the chain.
  package enum Chain: Equatable, Sendable {
    /// Nobody looked. Never good enough where a chain is asked for.
    case unchecked
    /// No chain to a trusted root could be built; the text is for the log.
    case invalid(String)
    /// The chain as built and verified, leaf first; never the list as sent (CVE-2016-2402).
    case built([Element])
  }

  /// SHA-256 of the leaf's SubjectPublicKeyInfo, or of the raw public key.
  package var publicKey: Digest256
  /// SHA-256 of the leaf; `nil` for a raw public key (RFC 7250).
  package var certificate: Digest256?
  package var chain: Chain
  /// Whether the leaf is for the host. `false` when nobody looked.
  package var nameMatches: Bool
  /// Whether the peer proved that it owns the key, in the handshake this evidence is from.
  package var keyProven: Bool
  /// End of validity of the first certificate of the chain to expire; `nil` when no chain was verified. Evidence that
  /// is judged again later must not be older.
  package var validUntil: Timestamp?

  /// Evidence from one inspection.
  package init(
    publicKey: Digest256, certificate: Digest256?, chain: Chain, nameMatches: Bool, keyProven: Bool,
    validUntil: Timestamp? = nil
  ) {
    self.publicKey = publicKey
    self.certificate = certificate
    self.chain = chain
    self.nameMatches = nameMatches
    self.keyProven = keyProven
    self.validUntil = validUntil
  }
}
