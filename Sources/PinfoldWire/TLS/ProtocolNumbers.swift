/// Protocol versions as they stand on the wire.
package enum TLSVersion {
  /// SSL 3.0, refused everywhere.
  package static let ssl30: UInt16 = 0x0300
  /// TLS 1.0 (RFC 2246).
  package static let tls10: UInt16 = 0x0301
  /// TLS 1.1 (RFC 4346).
  package static let tls11: UInt16 = 0x0302
  /// TLS 1.2 (RFC 5246).
  package static let tls12: UInt16 = 0x0303
  /// TLS 1.3 (RFC 8446).
  package static let tls13: UInt16 = 0x0304
}

/// Record content types (RFC 8446 §5.1).
package enum ContentType {
  package static let changeCipherSpec: UInt8 = 20
  package static let alert: UInt8 = 21
  package static let handshake: UInt8 = 22
  package static let applicationData: UInt8 = 23
}

/// Handshake message types (RFC 8446 §4, RFC 5246 §7.4, RFC 6066 §8, RFC 8879 §4).
package enum HandshakeType {
  package static let clientHello: UInt8 = 1
  package static let serverHello: UInt8 = 2
  package static let newSessionTicket: UInt8 = 4
  package static let encryptedExtensions: UInt8 = 8
  package static let certificate: UInt8 = 11
  package static let serverKeyExchange: UInt8 = 12
  package static let certificateRequest: UInt8 = 13
  package static let serverHelloDone: UInt8 = 14
  package static let certificateVerify: UInt8 = 15
  package static let finished: UInt8 = 20
  package static let certificateStatus: UInt8 = 22
  package static let compressedCertificate: UInt8 = 25
}

/// Extension types Pinfold looks into or has an opinion about (IANA "TLS ExtensionType Values").
package enum ExtensionType {
  package static let serverName: UInt16 = 0
  package static let statusRequest: UInt16 = 5
  package static let supportedGroups: UInt16 = 10
  package static let signatureAlgorithms: UInt16 = 13
  package static let alpn: UInt16 = 16
  package static let statusRequestV2: UInt16 = 17
  package static let signedCertificateTimestamp: UInt16 = 18
  package static let clientCertificateType: UInt16 = 19
  package static let serverCertificateType: UInt16 = 20
  package static let padding: UInt16 = 21
  package static let encryptThenMAC: UInt16 = 22
  package static let extendedMasterSecret: UInt16 = 23
  package static let compressCertificate: UInt16 = 27
  package static let delegatedCredential: UInt16 = 34
  package static let sessionTicket: UInt16 = 35
  package static let preSharedKey: UInt16 = 41
  package static let earlyData: UInt16 = 42
  package static let supportedVersions: UInt16 = 43
  package static let cookie: UInt16 = 44
  package static let pskKeyExchangeModes: UInt16 = 45
  package static let certificateAuthorities: UInt16 = 47
  package static let oidFilters: UInt16 = 48
  package static let postHandshakeAuth: UInt16 = 49
  package static let signatureAlgorithmsCert: UInt16 = 50
  package static let keyShare: UInt16 = 51
  package static let encryptedClientHello: UInt16 = 0xfe0d
  package static let renegotiationInfo: UInt16 = 0xff01
}
