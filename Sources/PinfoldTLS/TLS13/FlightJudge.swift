import PinfoldModel
import PinfoldWire

/// Verifies what a whole decrypted flight claims: CertificateVerify by the key shown, Finished by the handshake secret,
/// both over the transcript as it was sent.
struct FlightJudge {
  let hellos: Hellos13
  let suite: Suite13
  /// server_handshake_traffic_secret.
  let secret: DerivationKey
  let now: Timestamp
  let leaves: LeafMemory

  /// The facts, or why the flight is refused; offsets of refusals are those of the decrypted bytes.
  func judge(_ flight: EncryptedFlight, end: Int) -> FlightVerdict<Flight13> {
    do throws(TLSError) {
      return try verified(flight, end: end)
    } catch {
      // Of OpenSSL's errors the log needs no more than that there was one; what a peer can cause is refused by name.
      return .refused(.init(.internalError, at: 0, "OpenSSL failed while a flight was judged"))
    }
  }

  private func verified(
    _ flight: EncryptedFlight, end: Int
  ) throws(TLSError) -> FlightVerdict<Flight13> {
    let transcript = try hellos.transcript(suite)
    var shown = Shown(identity: .preSharedKey, leaf: nil, compression: nil, credential: nil)
    if let verify = flight.message(HandshakeType.certificateVerify) {
      switch identity(flight) {
      case .holds(let identity): shown = identity
      case .refused(let refusal): return .refused(refusal)
      }
      try transcript.add(flight.bytes(0..<verify.range.lowerBound))
      if let refusal = wrongProof(shown, flight, transcriptHash: try transcript.current()) {
        return .refused(.init(.keyNotProven, at: verify.range.lowerBound, constant: refusal))
      }
      try transcript.add(flight.bytes(verify.range))
    } else {
      // The reader lets a flight without certificate through only where a pre-shared key was selected.
      guard hellos.server.selectedPSK != nil, let finished = flight.message(HandshakeType.finished) else {
        return .refused(.init(.malformedHandshake, at: 0, "neither a certificate nor a pre-shared key"))
      }
      try transcript.add(flight.bytes(0..<finished.range.lowerBound))
    }
    let expected = try secret.finished(transcriptHash: try transcript.current())
    guard expected.matches(flight.bytes(flight.verifyData)) else {
      return .refused(.init(.keyNotProven, at: flight.verifyData.lowerBound, "the server's Finished is wrong"))
    }
    return .holds(
      Flight13(
        identity: shown.identity, usesDelegatedCredential: shown.credential != nil, compression: shown.compression,
        messages: flight, end: end))
  }

  /// What the Certificate message shows.
  private struct Shown {
    var identity: Flight13.Identity
    var leaf: LeafMemory.Leaf?
    var compression: CertificateOpener.Algorithm?
    var credential: [UInt8]?
  }

  private func identity(_ flight: EncryptedFlight) -> FlightVerdict<Shown> {
    let start = flight.message(HandshakeType.certificate)?.range.lowerBound ?? 0
    guard case .compressed(let algorithm, let length, let content) = flight.certificate else {
      return identity(flight.certificate, in: flight.handshake, compression: nil, at: start)
    }
    guard let body = CertificateOpener.open(flight.bytes(content), algorithm: algorithm, announced: length) else {
      return .refused(.init(.malformedHandshake, at: content.lowerBound, "the compressed certificate does not open"))
    }
    let opened: EncryptedFlight.Certificate
    do throws(WireError) {
      opened = try EncryptedFlight.certificate(
        opened: body, answering: hellos.client, rawPublicKey: flight.usesRawPublicKey)
    } catch {
      return .refused(.init(.malformedHandshake, at: content.lowerBound, "the opened certificate cannot be read"))
    }
    let compression = CertificateOpener.Algorithm(rawValue: algorithm)
    return identity(opened, in: body, compression: compression, at: content.lowerBound)
  }

  private func identity(
    _ shown: EncryptedFlight.Certificate, in bytes: [UInt8], compression: CertificateOpener.Algorithm?, at offset: Int
  ) -> FlightVerdict<Shown> {
    do throws(TLSError) {
      switch shown {
      case .rawPublicKey(let range):
        let key = try LeafKey(subjectPublicKeyInfo: Array(bytes[range]))
        let identity = Flight13.Identity.rawPublicKey(Array(bytes[range]), key)
        return .holds(Shown(identity: identity, leaf: nil, compression: compression, credential: nil))
      case .entries(let entries):
        let certificates = entries.map { Array(bytes[$0.certificate]) }
        guard let der = certificates.first, let first = entries.first else { break }
        let leaf = try leaves.leaf(der)
        let credential = first.delegatedCredential.map { Array(bytes[$0]) }
        return .holds(
          Shown(
            identity: .certificates(certificates, leaf: leaf), leaf: leaf, compression: compression,
            credential: credential))
      case .none, .compressed: break
      }
      return .refused(.init(.malformedHandshake, at: offset, "a CertificateVerify without a certificate"))
    } catch {
      return .refused(.init(.malformedHandshake, at: offset, "the leaf cannot be read"))
    }
  }

  /// Why the CertificateVerify does not prove the key; nil when it does.
  private func wrongProof(_ shown: Shown, _ flight: EncryptedFlight, transcriptHash: [UInt8]) -> String? {
    guard let signature = flight.signature, let scheme = flight.scheme else { return "no signature" }
    let key: LeafKey
    var offered = hellos.client.signatureAlgorithms
    do throws(TLSError) {
      switch (shown.identity, shown.leaf, shown.credential) {
      case (_, .some(let leaf), .some(let bytes)):
        let credential = DelegatedCredential(bytes)
        guard let credential else { return "the delegated credential cannot be read" }
        if let wrong = try credential.wrong(signedBy: leaf, offers: hellos.client, scheme: scheme, now: now) {
          return wrong
        }
        key = try LeafKey(subjectPublicKeyInfo: credential.publicKey)
        // RFC 9345 §4.1.3: no rsaEncryption key in a credential.
        guard key.kind != .rsa else { return "the delegated credential has a key it may not have" }
        offered = hellos.client.delegatedCredentialAlgorithms
      case (_, .some(let leaf), nil): key = leaf.key
      case (.rawPublicKey(_, let raw), nil, nil): key = raw
      default: return "no key"
      }
    } catch {
      return "the key cannot be used"
    }
    let proof = KeyProof.verify(
      signature: Array(flight.bytes(signature)),
      over: KeyProof.certificateVerifyContent(transcriptHash: transcriptHash), scheme: scheme, offered: offered,
      version: TLSVersion.tls13, by: key)
    switch proof {
    case .proven: return nil
    case .keyTransport: return "nothing is signed"
    case .notProven(let failure): return failure.rawValue
    }
  }
}

/// What a step found: what it looked for, or why the flight is refused.
enum FlightVerdict<Fact> {
  case holds(Fact)
  /// Offsets are those of the decrypted bytes.
  case refused(HandshakeRefusal)
}
