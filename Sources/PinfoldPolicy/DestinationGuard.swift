package import PinfoldModel

/// Decides whether a resolved address may be dialled. It is asked about the address, never about the name, so that
/// no answer of a resolver can lead a tunnel to where it must not go.
package struct DestinationGuard: Sendable {
  /// The answer for one address.
  package enum Verdict: Equatable, Sendable {
    case allowed
    /// Refused; the text says why, for the log.
    case denied(String)

    /// Whether the address may be dialled.
    package var isAllowed: Bool { self == .allowed }
  }

  private let allow: [AddressBlock]
  private let deny: [AddressBlock]

  /// `destinations.allow` opens blocks for unpinned hosts, `destinations.deny` closes them for every host.
  package init(allow: [AddressBlock] = [], deny: [AddressBlock] = []) {
    self.allow = allow
    self.deny = deny
  }

  /// `pinned` is `Decision.isPinned`. `ownListeners` are the addresses this process listens on, with wildcards
  /// written as they were bound. `isOwnAddress` says that the address is one of this machine's, on which a wildcard
  /// listener answers; what is not known before the connection stands is asked again then.
  ///
  /// Own listeners and `deny` are refused for every host; then addresses that are not public for unpinned ones,
  /// unless `allow` has them.
  package func verdict(
    _ address: IPAddress, port: UInt16, pinned: Bool, ownListeners: [SocketAddress] = [],
    isOwnAddress: Bool = false
  ) -> Verdict {
    let plain = address.unmapped
    let kind = AddressClass(plain)
    if ownListeners.contains(where: { Self.reaches($0, plain, kind, port, isOwnAddress) }) {
      return .denied("\(plain.text):\(port) is Pinfold itself")
    }
    let inner = plain.translated
    if contains(deny, plain) || inner.map({ contains(deny, $0) }) == true {
      return .denied("\(plain.text) is in destinations.deny")
    }
    switch kind {
    case .multicast, .broadcast: return .denied("\(plain.text) is \(kind.rawValue)")
    default: break
    }
    if pinned || kind.isPublic { return .allowed }
    // Allowing a translation prefix does not allow private addresses behind it.
    let innerAllowed = inner.map { AddressClass($0).isPublic || contains(allow, $0) } ?? true
    if contains(allow, plain), innerAllowed { return .allowed }
    return .denied("\(plain.text) is \(kind.rawValue), and its host is not pinned")
  }

  private func contains(_ blocks: [AddressBlock], _ address: IPAddress) -> Bool {
    blocks.contains { $0.contains(address) }
  }

  /// Whether dialling the address would end at the listener.
  private static func reaches(
    _ listener: SocketAddress, _ address: IPAddress, _ kind: AddressClass, _ port: UInt16,
    _ isOwnAddress: Bool
  ) -> Bool {
    guard listener.port == port else { return false }
    let bound = listener.address.unmapped
    if bound == address { return true }
    switch (AddressClass(bound), kind) {
    // A wildcard listener answers on every address of the machine.
    case (.unspecified, .loopback), (.unspecified, .unspecified): return true
    case (.unspecified, _): return isOwnAddress
    // Dialling the wildcard address reaches the loopback of the same family, which may be this listener.
    case (.loopback, .unspecified): return true
    default: return false
    }
  }
}
