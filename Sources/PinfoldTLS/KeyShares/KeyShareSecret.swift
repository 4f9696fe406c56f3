import COpenSSL

/// A key share of Pinfold's own, with the private half it was made from. For one handshake.
package final class KeyShareSecret: Sendable {
  /// The group.
  package let group: KeyExchangeGroup
  /// `key_exchange` of the client's KeyShareEntry, `group.clientShareCount` bytes.
  package let publicShare: [UInt8]

  private let classical: EphemeralKey
  private let mlkem: SecretBytes?

  /// Makes fresh keys.
  ///
  /// - Parameter half: take the classical half from this share instead of making one. Some clients (Go, Firefox)
  ///   put one X25519 key into two shares; a twin that did not would be told apart by it.
  package init(_ group: KeyExchangeGroup, sharing half: KeyShareSecret? = nil) throws(TLSError) {
    self.group = group
    switch group.kind {
    case .classical(let algorithm, let name):
      classical = try Self.key(algorithm, name, or: half, in: group)
      mlkem = nil
      publicShare = classical.publicShare
    case .hybrid(let inner, let leadsWithMLKEM):
      guard case .classical(let algorithm, let name) = inner.kind else {
        throw .failed(call: "KeyShareSecret", detail: "a hybrid of hybrids")
      }
      classical = try Self.key(algorithm, name, or: half, in: inner)
      var pair = try MLKEM768.keyPair(d: try Entropy.bytes(32), z: try Entropy.bytes(32))
      mlkem = SecretBytes(taking: &pair.decapsulationKey)
      publicShare =
        leadsWithMLKEM
        ? pair.encapsulationKey + classical.publicShare : classical.publicShare + pair.encapsulationKey
    }
    guard publicShare.count == group.clientShareCount else {
      throw .failed(call: "KeyShareSecret", detail: "a share of a wrong length")
    }
  }

  /// The classical key of `share` if it is of this group, else a fresh one.
  private static func key(
    _ algorithm: String, _ name: String?, or share: KeyShareSecret?, in group: KeyExchangeGroup
  ) throws(TLSError) -> EphemeralKey {
    if let share, share.group == group || share.group.classicalHalf == group { return share.classical }
    return try EphemeralKey(algorithm: algorithm, group: name)
  }

  /// The (EC)DHE input of the key schedule (RFC 8446 §7.4) with the server's share of the same group.
  package func derive(serverShare: [UInt8]) throws(TLSError) -> SecretBytes {
    guard serverShare.count == group.serverShareCount else { throw .unreadable("a key share of a wrong length") }
    guard case .hybrid(_, let leadsWithMLKEM) = group.kind, let mlkem else {
      return try classical.derive(peerShare: serverShare)
    }
    let split = leadsWithMLKEM ? MLKEM768.ciphertextCount : classical.publicShare.count
    let (first, second) = (Array(serverShare[..<split]), Array(serverShare[split...]))
    let ciphertext = leadsWithMLKEM ? first : second
    var opened = try MLKEM768.decapsulate(ciphertext, with: unsafe mlkem.withBytes { unsafe Array($0) })
    let lattice = SecretBytes(taking: &opened)
    let curve = try classical.derive(peerShare: leadsWithMLKEM ? second : first)
    return leadsWithMLKEM
      ? SecretBytes(lattice, followedBy: curve) : SecretBytes(curve, followedBy: lattice)
  }
}

/// Random bytes from OpenSSL's generator.
enum Entropy {
  /// RAND_bytes(3): `count` bytes no peer can guess.
  static func bytes(_ count: Int) throws(TLSError) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: count)
    guard let wanted = Int32(exactly: count) else { throw .tooLarge("\(count) random bytes at once") }
    ErrorQueue.clear()
    guard unsafe RAND_bytes(&output, wanted) == 1 else { throw .drained("RAND_bytes") }
    return output
  }
}
