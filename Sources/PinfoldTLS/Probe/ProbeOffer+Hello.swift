package import PinfoldWire

extension ProbeOffer {
  /// The offer of an application's ClientHello. `nil` if it offers no version Pinfold knows.
  ///
  /// Extensions OpenSSL sends by itself or not at all are not mirrored, and no session is offered: the server has to
  /// show its certificate.
  package init?(mirroring hello: ClientHello) {
    let versions = [TLSVersion.tls10, TLSVersion.tls11, TLSVersion.tls12, TLSVersion.tls13]
      .filter { hello.offers(version: $0) }
    guard let lowest = versions.first, let highest = versions.last else { return nil }
    self.init(serverName: nil)
    if case .host(let host) = hello.serverName { serverName = host }
    if let range = hello.alpnRange { alpn = Array(hello.message[range]) }
    profile = Profile(
      lowest: lowest, highest: highest,
      cipherSuites: hello.cipherSuites.filter { !ClientHello.isGrease($0) },
      groups: hello.supportedGroups.filter { !ClientHello.isGrease($0) },
      signatureSchemes: hello.signatureAlgorithms.filter { !ClientHello.isGrease($0) },
      requestsStatus: hello.requestsStatus)
  }
}
