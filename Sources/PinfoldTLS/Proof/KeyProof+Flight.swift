package import PinfoldWire

extension KeyProof {
  /// The proof in a TLS 1.0–1.2 flight read in the clear: its ServerKeyExchange by the leaf's key, over the randoms of
  /// this very handshake, or the fact that the suite is static RSA.
  package static func of(_ flight: ServerFlight, answering client: ClientHello, by key: LeafKey) -> KeyProof {
    switch flight.keyProof {
    case .keyTransport:
      return keyTransport(by: key)
    case .signature(let exchange, let wanted):
      guard wanted.fits(key.kind) else { return .notProven(.schemeUnfit) }
      let content = serverKeyExchangeContent(
        clientRandom: client.message[client.randomRange], serverRandom: flight.serverHello.random[...],
        parameters: flight.bytes(exchange.parameters))
      return verify(
        signature: Array(flight.bytes(exchange.signature)), over: content, scheme: exchange.scheme,
        offered: client.signatureAlgorithms.isEmpty ? nil : client.signatureAlgorithms,
        version: flight.serverHello.version, by: key)
    }
  }
}

extension SignatureKey {
  /// Whether the certificate's key is of the kind the cipher suite names (RFC 5246 §7.4.2, RFC 8422 §5.1.1).
  fileprivate func fits(_ kind: LeafKey.Kind) -> Bool {
    switch (self, kind) {
    case (.rsa, .rsa), (.rsa, .rsaPSS), (.ecdsa, .ellipticCurve), (.ecdsa, .ed25519), (.ecdsa, .ed448): true
    default: false
    }
  }
}
