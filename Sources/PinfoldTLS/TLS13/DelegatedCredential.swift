import COpenSSL
import PinfoldModel
import PinfoldWire

/// A delegated credential (RFC 9345): a short-lived key that a leaf certificate signs for.
///
/// What is pinned stays the leaf's key: it signs the credential, the credential's key signs the handshake.
struct DelegatedCredential: Sendable {
  /// Longest validity a client may take, in seconds (RFC 9345 §4.1.3): seven days.
  static let longestValidity: Int64 = 7 * 24 * 3600

  /// Seconds after the leaf's notBefore at which it ends.
  let validTime: UInt32
  /// The scheme the CertificateVerify has to use.
  let verifyScheme: UInt16
  /// DER SubjectPublicKeyInfo.
  let publicKey: [UInt8]
  /// The scheme of the leaf's signature.
  let scheme: UInt16
  private let signature: [UInt8]
  /// Credential and scheme: what is signed of it.
  private let signed: [UInt8]

  /// Reads the content of the extension; nil when it is not exactly one credential.
  init?(_ bytes: [UInt8]) {
    var reader = ByteReader(bytes.span)
    do throws(WireError) {
      validTime = try reader.u32()
      verifyScheme = try reader.u16()
      let key = try reader.vector(width: 3, atLeast: 1)
      publicKey = Array(bytes[key])
      scheme = try reader.u16()
      signed = Array(bytes[..<reader.offset])
      let range = try reader.vector(width: 2, atLeast: 1)
      signature = Array(bytes[range])
      try reader.finish()
    } catch {
      return nil
    }
  }

  /// The checks of RFC 9345 §4.1.3; the constant text of the first that fails, nil when all hold.
  func wrong(
    signedBy leaf: LeafMemory.Leaf, offers client: ClientHello, scheme used: UInt16, now: Timestamp
  ) throws(TLSError) -> String? {
    guard client.delegatedCredentialAlgorithms.contains(verifyScheme), used == verifyScheme else {
      return "the delegated credential is for another signature scheme"
    }
    guard let begin = leaf.certificate.notBefore else { return "the certificate's validity cannot be read" }
    let left = begin.seconds + Int64(validTime) - now.seconds
    guard left > 0, left <= Self.longestValidity else { return "the delegated credential is not valid now" }
    guard Self.mayDelegate(leaf.certificate) else { return "the certificate may not delegate" }
    let content =
      [UInt8](repeating: 0x20, count: 64) + Array("TLS, server delegated credentials".utf8) + [0]
      + (try leaf.certificate.der()) + signed
    let proof = KeyProof.verify(
      signature: signature, over: content, scheme: scheme, offered: client.signatureAlgorithms,
      version: TLSVersion.tls13, by: leaf.key)
    return proof == .proven ? nil : "the delegated credential is not signed by the certificate's key"
  }

  /// RFC 9345 §4.2: the DelegationUsage extension, and digitalSignature among the key usages (X509_get_key_usage(3)).
  private static func mayDelegate(_ leaf: Certificate) -> Bool {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let usage = unsafe OBJ_txt2obj("1.3.6.1.4.1.44363.44", 1) else { return false }
    defer { unsafe ASN1_OBJECT_free(usage) }
    guard unsafe X509_get_ext_by_OBJ(leaf.raw, usage, -1) >= 0 else { return false }
    return unsafe X509_get_key_usage(leaf.raw) & UInt32(KU_DIGITAL_SIGNATURE) != 0
      && X509_get_extension_flags(leaf.raw) & UInt32(EXFLAG_KUSAGE) != 0
  }
}
