import PinfoldModel
import PinfoldPolicy
import PinfoldTLS
import PinfoldWire

extension Inspection {
  /// Judges a full handshake of TLS 1.0–1.2 by its own bytes: chain and name by OpenSSL, ownership of the key by the
  /// ServerKeyExchange signature over both randoms.
  func judgeInBand(_ flight: ServerFlight, _ hello: ClientHello) throws(Refusal) -> Evidence {
    let judgement: ChainJudgement
    do {
      judgement = try rules.verifier.judge(flight, host: decision.authority.host, now: rules.now)
    } catch {
      throw Refusal(error, method: .inBand)
    }
    return Evidence(judgement, keyProven: KeyProof.of(flight, answering: hello, by: judgement.leafKey).holds)
  }
}

extension Evidence {
  /// The judgement of a chain as the policy reads it.
  init(_ judgement: ChainJudgement, keyProven: Bool) {
    let chain: Chain =
      judgement.chainVerified
      ? .built(judgement.builtChain.map { Element(publicKey: $0.key, certificate: $0.certificate) })
      : .invalid(judgement.chainError ?? "the chain does not verify")
    self.init(
      publicKey: judgement.leafKeyDigest, certificate: judgement.leafCertificateDigest, chain: chain,
      nameMatches: judgement.nameMatches, keyProven: keyProven,
      validUntil: judgement.chainVerified ? judgement.validUntil : nil)
  }
}
