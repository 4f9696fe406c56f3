/// OpenSSL's names for the numbers of a ClientHello (SSL_CTX_set1_groups_list(3), SSL_CTX_set1_sigalgs_list(3)).
/// Numbers without a name here are those it cannot use.
enum ProbeNames {
  /// Names of the known groups, in the order given.
  static func groups(_ codes: [UInt16]) -> [String] { codes.compactMap { groupNames[$0] }.unique }

  /// Names of the known signature schemes, in the order given.
  static func schemes(_ codes: [UInt16]) -> [String] { codes.compactMap { schemeNames[$0] }.unique }

  private static let groupNames: [UInt16: String] = [
    0x0017: "P-256", 0x0018: "P-384", 0x0019: "P-521", 0x001d: "X25519", 0x001e: "X448",
    0x0100: "ffdhe2048", 0x0101: "ffdhe3072", 0x0102: "ffdhe4096", 0x0103: "ffdhe6144", 0x0104: "ffdhe8192",
  ]

  private static let schemeNames: [UInt16: String] = [
    0x0201: "RSA+SHA1", 0x0203: "ECDSA+SHA1", 0x0301: "RSA+SHA224", 0x0303: "ECDSA+SHA224",
    0x0401: "RSA+SHA256", 0x0501: "RSA+SHA384", 0x0601: "RSA+SHA512",
    0x0403: "ECDSA+SHA256", 0x0503: "ECDSA+SHA384", 0x0603: "ECDSA+SHA512",
    0x0804: "rsa_pss_rsae_sha256", 0x0805: "rsa_pss_rsae_sha384", 0x0806: "rsa_pss_rsae_sha512",
    0x0807: "ed25519", 0x0808: "ed448",
    0x0809: "rsa_pss_pss_sha256", 0x080a: "rsa_pss_pss_sha384", 0x080b: "rsa_pss_pss_sha512",
  ]
}

extension [String] {
  /// The same without repetitions, which OpenSSL refuses.
  fileprivate var unique: [String] {
    var seen: Set<String> = []
    return filter { seen.insert($0).inserted }
  }
}
