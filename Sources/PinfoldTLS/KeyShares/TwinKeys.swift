package import PinfoldWire

/// The key shares of a twin hello: one for each of the app's, with the same kinship between them.
///
/// Go and Firefox put one X25519 key into two shares of a hello, and a client may send a share again in its second hello.
/// Where the app's bytes are equal, the twin's are equal too: otherwise that alone would tell the two apart.
package struct TwinKeys: Sendable {
  /// One classical key of the app and the share of ours that holds its counterpart.
  private struct Kinship: Sendable {
    let group: KeyExchangeGroup
    let appKey: [UInt8]
    let own: KeyShareSecret
  }

  private var kinships: [Kinship] = []
  private var secrets: [KeyExchangeGroup: KeyShareSecret] = [:]

  /// Makes keys for every share of `app`, taking over what its earlier hello had already.
  ///
  /// - Throws: `TwinFailure.impossible` for a group without keys of ours, `.openSSL` when keys cannot be made.
  package init(for app: ClientHello, after earlier: TwinKeys? = nil) throws(TwinFailure) {
    kinships = earlier?.kinships ?? []
    for share in app.keyShares where !ClientHello.isGrease(share.group) {
      guard let group = KeyExchangeGroup(rawValue: share.group), share.key.count == group.clientShareCount else {
        throw .impossible(.keyShare(group: share.group))
      }
      let bytes = Array(app.message[share.key])
      if let same = kinships.first(where: { $0.own.group == group && $0.appKey == bytes }) {
        secrets[group] = same.own
        continue
      }
      let half = group.classicalHalf ?? group
      let halfKey = group.classicalKey(of: bytes)
      let kin = kinships.first { $0.group == half && $0.appKey == halfKey }
      do throws(TLSError) {
        let own = try KeyShareSecret(group, sharing: kin?.own)
        secrets[group] = own
        kinships.append(Kinship(group: half, appKey: halfKey, own: own))
        if half != group { kinships.append(Kinship(group: group, appKey: bytes, own: own)) }
      } catch {
        throw .openSSL(error)
      }
    }
  }

  /// The public shares by group number.
  package var shares: [UInt16: [UInt8]] {
    var result: [UInt16: [UInt8]] = [:]
    for (group, secret) in secrets { result[group.rawValue] = secret.publicShare }
    return result
  }

  /// The share of a group.
  package func secret(_ group: UInt16) -> KeyShareSecret? {
    KeyExchangeGroup(rawValue: group).flatMap { secrets[$0] }
  }
}

extension KeyExchangeGroup {
  /// The classical part of a client's share: all of it, or one end of a hybrid one.
  func classicalKey(of share: [UInt8]) -> [UInt8] {
    guard case .hybrid(let half, let leadsWithMLKEM) = kind else { return share }
    return Array(leadsWithMLKEM ? share.suffix(half.clientShareCount) : share.prefix(half.clientShareCount))
  }
}
