/// A code of the `signature_algorithms` registry that Pinfold verifies (RFC 8446 §4.2.3, RFC 5246 §7.4.1.4.1).
/// DSA and MD5 are not among them.
struct SignatureScheme: Sendable {
  /// Which keys may sign with it.
  enum Signer: Sendable { case rsa, rsaPSS, ellipticCurve, ed25519, ed448 }

  let signer: Signer
  let method: SignatureMethod
  /// The one curve it stands for in TLS 1.3; `nil` where it may not sign a TLS 1.3 handshake, or names no curve.
  let curve: String?
  /// Whether a TLS 1.3 CertificateVerify may use it.
  let signsTLS13: Bool

  private init(
    _ signer: Signer, _ hash: SignatureMethod.Hash, _ padding: SignatureMethod.Padding = .none, curve: String? = nil,
    signsTLS13: Bool
  ) {
    self.signer = signer
    method = SignatureMethod(hash: hash, padding: padding)
    self.curve = curve
    self.signsTLS13 = signsTLS13
  }

  init?(code: UInt16) {
    switch code {
    case 0x0201: self.init(.rsa, .sha1, .pkcs1, signsTLS13: false)
    case 0x0301: self.init(.rsa, .sha224, .pkcs1, signsTLS13: false)
    case 0x0401: self.init(.rsa, .sha256, .pkcs1, signsTLS13: false)
    case 0x0501: self.init(.rsa, .sha384, .pkcs1, signsTLS13: false)
    case 0x0601: self.init(.rsa, .sha512, .pkcs1, signsTLS13: false)
    case 0x0203: self.init(.ellipticCurve, .sha1, signsTLS13: false)
    case 0x0303: self.init(.ellipticCurve, .sha224, signsTLS13: false)
    case 0x0403: self.init(.ellipticCurve, .sha256, curve: "prime256v1", signsTLS13: true)
    case 0x0503: self.init(.ellipticCurve, .sha384, curve: "secp384r1", signsTLS13: true)
    case 0x0603: self.init(.ellipticCurve, .sha512, curve: "secp521r1", signsTLS13: true)
    case 0x0804: self.init(.rsa, .sha256, .pss, signsTLS13: true)
    case 0x0805: self.init(.rsa, .sha384, .pss, signsTLS13: true)
    case 0x0806: self.init(.rsa, .sha512, .pss, signsTLS13: true)
    case 0x0807: self.init(.ed25519, .none, signsTLS13: true)
    case 0x0808: self.init(.ed448, .none, signsTLS13: true)
    case 0x0809: self.init(.rsaPSS, .sha256, .pss, signsTLS13: true)
    case 0x080a: self.init(.rsaPSS, .sha384, .pss, signsTLS13: true)
    case 0x080b: self.init(.rsaPSS, .sha512, .pss, signsTLS13: true)
    default: return nil
    }
  }

  /// What TLS 1.0 and 1.1 sign with, where no code is on the wire (RFC 4346 §7.4.3, RFC 4492 §5.4).
  init?(legacyFor kind: LeafKey.Kind) {
    switch kind {
    case .rsa: self.init(.rsa, .md5sha1, .pkcs1, signsTLS13: false)
    case .ellipticCurve: self.init(.ellipticCurve, .sha1, signsTLS13: false)
    default: return nil
    }
  }

  /// Whether a key may sign with this. Before TLS 1.3 a curve and a hash may be paired freely.
  func fits(_ kind: LeafKey.Kind, isTLS13: Bool) -> Bool {
    if isTLS13, !signsTLS13 { return false }
    switch (signer, kind) {
    case (.rsa, .rsa), (.rsaPSS, .rsaPSS), (.ed25519, .ed25519), (.ed448, .ed448): return true
    case (.ellipticCurve, .ellipticCurve(let name)): return !isTLS13 || name == curve
    default: return false
    }
  }
}
