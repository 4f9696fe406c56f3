import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldTLS

/// Key shares of our own in every group, against a second party made of the same parts and against real hellos.
@Suite("key shares") struct KeyShareTests {
  /// The server's half of a handshake in a group: its share and the secret it would have.
  private func answer(_ client: KeyShareSecret) throws -> (share: [UInt8], secret: SecretBytes) {
    guard case .hybrid(let half, let leadsWithMLKEM) = client.group.kind else {
      let server = try KeyShareSecret(client.group)
      return (server.publicShare, try server.derive(serverShare: client.publicShare))
    }
    let classical = try KeyShareSecret(half)
    let split = leadsWithMLKEM ? MLKEM768.encapsulationKeyCount : half.clientShareCount
    let (first, second) = (Array(client.publicShare[..<split]), Array(client.publicShare[split...]))
    var sent = try MLKEM768.encapsulate(
      to: leadsWithMLKEM ? first : second, message: [UInt8](repeating: 9, count: 32))
    let lattice = SecretBytes(taking: &sent.secret)
    let curve = try classical.derive(serverShare: leadsWithMLKEM ? second : first)
    return leadsWithMLKEM
      ? (sent.ciphertext + classical.publicShare, SecretBytes(lattice, followedBy: curve))
      : (classical.publicShare + sent.ciphertext, SecretBytes(curve, followedBy: lattice))
  }

  @Test(
    "both sides agree on a secret, and shares have the lengths of the registry", arguments: KeyExchangeGroup.allCases)
  func agreement(_ group: KeyExchangeGroup) throws {
    let client = try KeyShareSecret(group)
    #expect(client.publicShare.count == group.clientShareCount)
    let server = try answer(client)
    #expect(server.share.count == group.serverShareCount)
    let secret = try client.derive(serverShare: server.share)
    #expect(secret.matches(server.secret))
    #expect(try KeyShareSecret(group).publicShare != client.publicShare)
  }

  @Test("broken shares are errors or give another secret, never the same one", arguments: KeyExchangeGroup.allCases)
  func brokenShares(_ group: KeyExchangeGroup) throws {
    let client = try KeyShareSecret(group)
    let server = try answer(client)
    for count in [0, 1, group.serverShareCount - 1] {
      #expect(throws: TLSError.self) { try client.derive(serverShare: Array(server.share.prefix(count))) }
    }
    #expect(throws: TLSError.self) { try client.derive(serverShare: server.share + [0]) }
    #expect(throws: TLSError.self) {
      try client.derive(serverShare: [UInt8](repeating: 0, count: group.serverShareCount))
    }
    var broken = server.share
    broken[broken.count / 2] ^= 1
    let other = try? client.derive(serverShare: broken)
    #expect(other?.matches(server.secret) != true)
  }

  @Test("a half can be shared between a hybrid group and its classical one") func sharing() throws {
    let lone = try KeyShareSecret(.x25519)
    let hybrid = try KeyShareSecret(.x25519MLKEM768, sharing: lone)
    #expect(Array(hybrid.publicShare.suffix(32)) == lone.publicShare)
    #expect(try KeyShareSecret(.x25519, sharing: hybrid).publicShare == lone.publicShare)
    #expect(try KeyShareSecret(.secp256r1, sharing: hybrid).publicShare.count == 65)
    let curve = try KeyShareSecret(.secp256r1)
    let mixed = try KeyShareSecret(.secp256r1MLKEM768, sharing: curve)
    #expect(Array(mixed.publicShare.prefix(65)) == curve.publicShare)
  }

  @Test("shares of every captured hello have the lengths stated here", arguments: Capture.hellos13)
  func captured(_ capture: Capture) throws {
    let hellos = [try capture.hello()] + [try? capture.hellos().retry?.second].compactMap { $0 }
    for hello in hellos {
      for share in hello.keyShares {
        guard let group = KeyExchangeGroup(rawValue: share.group) else {
          #expect(ClientHello.isGrease(share.group), "group \(share.group) is unknown")
          continue
        }
        #expect(share.key.count == group.clientShareCount)
        // A real client's ML-KEM key passes the modulus check of FIPS 203 §7.2.
        if group == .x25519MLKEM768 {
          let key = Array(hello.message[share.key].prefix(MLKEM768.encapsulationKeyCount))
          let sent = try MLKEM768.encapsulate(to: key, message: [UInt8](repeating: 1, count: 32))
          #expect(sent.ciphertext.count == MLKEM768.ciphertextCount)
        }
      }
    }
  }
}
