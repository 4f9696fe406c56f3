import PinfoldWire
import Testing

/// Suites of the registry by name and number, a few of each kind and both ends of every family.
@Suite struct CipherSuiteTests {
  static let rows: [(UInt16, String, SuiteKind)] = [
    (0x0000, "NULL_WITH_NULL_NULL", .unauthenticated),
    (0x0001, "RSA_WITH_NULL_MD5", .keyTransport),
    (0x0003, "RSA_EXPORT_WITH_RC4_40_MD5", .export),
    (0x0005, "RSA_WITH_RC4_128_SHA", .keyTransport),
    (0x000a, "RSA_WITH_3DES_EDE_CBC_SHA", .keyTransport),
    (0x000d, "DH_DSS_WITH_3DES_EDE_CBC_SHA", .staticKeyAgreement),
    (0x0013, "DHE_DSS_WITH_3DES_EDE_CBC_SHA", .signed(.dhe, .dss)),
    (0x0014, "DHE_RSA_EXPORT_WITH_DES40_CBC_SHA", .export),
    (0x0016, "DHE_RSA_WITH_3DES_EDE_CBC_SHA", .signed(.dhe, .rsa)),
    (0x0017, "DH_anon_EXPORT_WITH_RC4_40_MD5", .export),
    (0x0018, "DH_anon_WITH_RC4_128_MD5", .unauthenticated),
    (0x001e, "KRB5_WITH_DES_CBC_SHA", .unauthenticated),
    (0x002b, "KRB5_EXPORT_WITH_RC4_40_MD5", .export),
    (0x002c, "PSK_WITH_NULL_SHA", .preSharedKey),
    (0x002e, "RSA_PSK_WITH_NULL_SHA", .rsaPSK),
    (0x002f, "RSA_WITH_AES_128_CBC_SHA", .keyTransport),
    (0x0030, "DH_DSS_WITH_AES_128_CBC_SHA", .staticKeyAgreement),
    (0x0031, "DH_RSA_WITH_AES_128_CBC_SHA", .staticKeyAgreement),
    (0x0032, "DHE_DSS_WITH_AES_128_CBC_SHA", .signed(.dhe, .dss)),
    (0x0033, "DHE_RSA_WITH_AES_128_CBC_SHA", .signed(.dhe, .rsa)),
    (0x0034, "DH_anon_WITH_AES_128_CBC_SHA", .unauthenticated),
    (0x003d, "RSA_WITH_AES_256_CBC_SHA256", .keyTransport),
    (0x0040, "DHE_DSS_WITH_AES_128_CBC_SHA256", .signed(.dhe, .dss)),
    (0x006b, "DHE_RSA_WITH_AES_256_CBC_SHA256", .signed(.dhe, .rsa)),
    (0x006d, "DH_anon_WITH_AES_256_CBC_SHA256", .unauthenticated),
    (0x0088, "DHE_RSA_WITH_CAMELLIA_256_CBC_SHA", .signed(.dhe, .rsa)),
    (0x008a, "PSK_WITH_RC4_128_SHA", .preSharedKey),
    (0x0091, "DHE_PSK_WITH_AES_256_CBC_SHA", .preSharedKey),
    (0x0095, "RSA_PSK_WITH_AES_256_CBC_SHA", .rsaPSK),
    (0x009b, "DH_anon_WITH_SEED_CBC_SHA", .unauthenticated),
    (0x009c, "RSA_WITH_AES_128_GCM_SHA256", .keyTransport),
    (0x009f, "DHE_RSA_WITH_AES_256_GCM_SHA384", .signed(.dhe, .rsa)),
    (0x00a3, "DHE_DSS_WITH_AES_256_GCM_SHA384", .signed(.dhe, .dss)),
    (0x00a6, "DH_anon_WITH_AES_128_GCM_SHA256", .unauthenticated),
    (0x00a8, "PSK_WITH_AES_128_GCM_SHA256", .preSharedKey),
    (0x00ac, "RSA_PSK_WITH_AES_128_GCM_SHA256", .rsaPSK),
    (0x00b9, "RSA_PSK_WITH_NULL_SHA384", .rsaPSK),
    (0x00c5, "DH_anon_WITH_CAMELLIA_256_CBC_SHA256", .unauthenticated),
    (0x00ff, "EMPTY_RENEGOTIATION_INFO_SCSV", .unknown),
    (0x1301, "AES_128_GCM_SHA256", .tls13(.sha256)),
    (0x1302, "AES_256_GCM_SHA384", .tls13(.sha384)),
    (0x1303, "CHACHA20_POLY1305_SHA256", .tls13(.sha256)),
    (0x1304, "AES_128_CCM_SHA256", .tls13(.sha256)),
    (0x1305, "AES_128_CCM_8_SHA256", .tls13(.sha256)),
    (0x1306, "AEGIS_256_SHA512", .unknown),
    (0x5600, "FALLBACK_SCSV", .unknown),
    (0xc005, "ECDH_ECDSA_WITH_AES_256_CBC_SHA", .staticKeyAgreement),
    (0xc006, "ECDHE_ECDSA_WITH_NULL_SHA", .signed(.ecdhe, .ecdsa)),
    (0xc00a, "ECDHE_ECDSA_WITH_AES_256_CBC_SHA", .signed(.ecdhe, .ecdsa)),
    (0xc00f, "ECDH_RSA_WITH_AES_256_CBC_SHA", .staticKeyAgreement),
    (0xc014, "ECDHE_RSA_WITH_AES_256_CBC_SHA", .signed(.ecdhe, .rsa)),
    (0xc018, "ECDH_anon_WITH_AES_128_CBC_SHA", .unauthenticated),
    (0xc01a, "SRP_SHA_WITH_3DES_EDE_CBC_SHA", .unauthenticated),
    (0xc01b, "SRP_SHA_RSA_WITH_3DES_EDE_CBC_SHA", .srp),
    (0xc022, "SRP_SHA_DSS_WITH_AES_256_CBC_SHA", .srp),
    (0xc024, "ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", .signed(.ecdhe, .ecdsa)),
    (0xc028, "ECDHE_RSA_WITH_AES_256_CBC_SHA384", .signed(.ecdhe, .rsa)),
    (0xc02b, "ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", .signed(.ecdhe, .ecdsa)),
    (0xc02d, "ECDH_ECDSA_WITH_AES_128_GCM_SHA256", .staticKeyAgreement),
    (0xc030, "ECDHE_RSA_WITH_AES_256_GCM_SHA384", .signed(.ecdhe, .rsa)),
    (0xc032, "ECDH_RSA_WITH_AES_256_GCM_SHA384", .staticKeyAgreement),
    (0xc037, "ECDHE_PSK_WITH_AES_128_CBC_SHA256", .preSharedKey),
    (0xc045, "DHE_RSA_WITH_ARIA_256_CBC_SHA384", .signed(.dhe, .rsa)),
    (0xc061, "ECDHE_RSA_WITH_ARIA_256_GCM_SHA384", .signed(.ecdhe, .rsa)),
    (0xc06e, "RSA_PSK_WITH_ARIA_128_GCM_SHA256", .rsaPSK),
    (0xc070, "ECDHE_PSK_WITH_ARIA_128_CBC_SHA256", .preSharedKey),
    (0xc077, "ECDHE_RSA_WITH_CAMELLIA_256_CBC_SHA384", .signed(.ecdhe, .rsa)),
    (0xc084, "DH_anon_WITH_CAMELLIA_128_GCM_SHA256", .unauthenticated),
    (0xc08b, "ECDHE_RSA_WITH_CAMELLIA_256_GCM_SHA384", .signed(.ecdhe, .rsa)),
    (0xc099, "RSA_PSK_WITH_CAMELLIA_256_CBC_SHA384", .rsaPSK),
    (0xc09c, "RSA_WITH_AES_128_CCM", .keyTransport),
    (0xc0a1, "RSA_WITH_AES_256_CCM_8", .keyTransport),
    (0xc0a3, "DHE_RSA_WITH_AES_256_CCM_8", .signed(.dhe, .rsa)),
    (0xc0ab, "PSK_DHE_WITH_AES_256_CCM_8", .preSharedKey),
    (0xc0ae, "ECDHE_ECDSA_WITH_AES_128_CCM_8", .signed(.ecdhe, .ecdsa)),
    (0xc0b3, "ECCPWD_WITH_AES_256_CCM_SHA384", .unauthenticated),
    (0xc0b4, "SHA256_SHA256", .unknown),
    (0xc102, "GOSTR341112_256_WITH_28147_CNT_IMIT", .unknown),
    (0xcca8, "ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", .signed(.ecdhe, .rsa)),
    (0xcca9, "ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", .signed(.ecdhe, .ecdsa)),
    (0xccaa, "DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", .signed(.dhe, .rsa)),
    (0xccac, "ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256", .preSharedKey),
    (0xccae, "RSA_PSK_WITH_CHACHA20_POLY1305_SHA256", .rsaPSK),
    (0xd001, "ECDHE_PSK_WITH_AES_128_GCM_SHA256", .preSharedKey),
    (0x0a0a, "GREASE", .unknown),
  ]

  @Test(arguments: rows)
  func `a suite is of its kind`(_ id: UInt16, _ name: String, _ kind: SuiteKind) {
    #expect(CipherSuite(id).kind == kind, "\(name)")
  }

  /// The registry's count per kind, so that no range reaches further than it should.
  @Test func `as many numbers are of a kind as the registry has`() {
    var kinds: [SuiteKind] = []
    for id in 0...UInt16.max where CipherSuite(id).kind != .unknown { kinds.append(CipherSuite(id).kind) }
    func count(_ kind: SuiteKind) -> Int { kinds.count { $0 == kind } }
    #expect(count(.signed(.ecdhe, .ecdsa)) == 22)
    #expect(count(.signed(.ecdhe, .rsa)) == 18)
    #expect(count(.signed(.dhe, .rsa)) == 24)
    #expect(count(.signed(.dhe, .dss)) == 19)
    #expect(count(.keyTransport) == 29)
    #expect(count(.rsaPSK) == 20)
    #expect(count(.tls13(.sha256)) == 4)
    #expect(count(.tls13(.sha384)) == 1)
    #expect(kinds.count == 338)
  }
}
