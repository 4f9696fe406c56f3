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
  /// change_cipher_spec (RFC 5246 §7.1); in TLS 1.3 a record for middleboxes without meaning.
  package static let changeCipherSpec: UInt8 = 20
  /// alert (RFC 8446 §6).
  package static let alert: UInt8 = 21
  /// handshake (RFC 8446 §4).
  package static let handshake: UInt8 = 22
  /// application_data: in TLS 1.3 every protected record (RFC 8446 §5.2).
  package static let applicationData: UInt8 = 23
}

/// Handshake message types (RFC 8446 §4, RFC 5246 §7.4, RFC 6066 §8, RFC 8879 §4).
package enum HandshakeType {
  /// client_hello.
  package static let clientHello: UInt8 = 1
  /// server_hello, a HelloRetryRequest included.
  package static let serverHello: UInt8 = 2
  /// new_session_ticket (RFC 5077 §3.3, RFC 8446 §4.6.1).
  package static let newSessionTicket: UInt8 = 4
  /// encrypted_extensions (RFC 8446 §4.3.1).
  package static let encryptedExtensions: UInt8 = 8
  /// certificate.
  package static let certificate: UInt8 = 11
  /// server_key_exchange, TLS 1.2 and older.
  package static let serverKeyExchange: UInt8 = 12
  /// certificate_request.
  package static let certificateRequest: UInt8 = 13
  /// server_hello_done, TLS 1.2 and older.
  package static let serverHelloDone: UInt8 = 14
  /// certificate_verify.
  package static let certificateVerify: UInt8 = 15
  /// finished.
  package static let finished: UInt8 = 20
  /// certificate_status, TLS 1.2 and older (RFC 6066 §8).
  package static let certificateStatus: UInt8 = 22
  /// compressed_certificate (RFC 8879 §4).
  package static let compressedCertificate: UInt8 = 25
}

/// Extension types Pinfold looks into or has an opinion about (IANA "TLS ExtensionType Values").
package enum ExtensionType {
  /// server_name (RFC 6066 §3).
  package static let serverName: UInt16 = 0
  /// max_fragment_length (RFC 6066 §4).
  package static let maxFragmentLength: UInt16 = 1
  /// status_request (RFC 6066 §8).
  package static let statusRequest: UInt16 = 5
  /// supported_groups (RFC 8446 §4.2.7).
  package static let supportedGroups: UInt16 = 10
  /// ec_point_formats (RFC 8422 §5.1.2).
  package static let ecPointFormats: UInt16 = 11
  /// signature_algorithms (RFC 8446 §4.2.3).
  package static let signatureAlgorithms: UInt16 = 13
  /// use_srtp (RFC 5764).
  package static let useSRTP: UInt16 = 14
  /// heartbeat (RFC 6520).
  package static let heartbeat: UInt16 = 15
  /// application_layer_protocol_negotiation (RFC 7301).
  package static let alpn: UInt16 = 16
  /// status_request_v2 (RFC 6961).
  package static let statusRequestV2: UInt16 = 17
  /// signed_certificate_timestamp (RFC 6962 §3.3.1).
  package static let signedCertificateTimestamp: UInt16 = 18
  /// client_certificate_type (RFC 7250).
  package static let clientCertificateType: UInt16 = 19
  /// server_certificate_type (RFC 7250).
  package static let serverCertificateType: UInt16 = 20
  /// padding (RFC 7685).
  package static let padding: UInt16 = 21
  /// encrypt_then_mac (RFC 7366).
  package static let encryptThenMAC: UInt16 = 22
  /// extended_master_secret (RFC 7627).
  package static let extendedMasterSecret: UInt16 = 23
  /// compress_certificate (RFC 8879).
  package static let compressCertificate: UInt16 = 27
  /// record_size_limit (RFC 8449).
  package static let recordSizeLimit: UInt16 = 28
  /// delegated_credential (RFC 9345).
  package static let delegatedCredential: UInt16 = 34
  /// session_ticket (RFC 5077).
  package static let sessionTicket: UInt16 = 35
  /// pre_shared_key (RFC 8446 §4.2.11).
  package static let preSharedKey: UInt16 = 41
  /// early_data (RFC 8446 §4.2.10).
  package static let earlyData: UInt16 = 42
  /// supported_versions (RFC 8446 §4.2.1).
  package static let supportedVersions: UInt16 = 43
  /// cookie (RFC 8446 §4.2.2).
  package static let cookie: UInt16 = 44
  /// psk_key_exchange_modes (RFC 8446 §4.2.9).
  package static let pskKeyExchangeModes: UInt16 = 45
  /// certificate_authorities (RFC 8446 §4.2.4).
  package static let certificateAuthorities: UInt16 = 47
  /// oid_filters (RFC 8446 §4.2.5).
  package static let oidFilters: UInt16 = 48
  /// post_handshake_auth (RFC 8446 §4.2.6).
  package static let postHandshakeAuth: UInt16 = 49
  /// signature_algorithms_cert (RFC 8446 §4.2.3).
  package static let signatureAlgorithmsCert: UInt16 = 50
  /// key_share (RFC 8446 §4.2.8).
  package static let keyShare: UInt16 = 51
  /// transparency_info (RFC 9162 §6.5).
  package static let transparencyInfo: UInt16 = 52
  /// quic_transport_parameters (RFC 9001 §8.2).
  package static let quicTransportParameters: UInt16 = 57
  /// ticket_request (RFC 9149).
  package static let ticketRequest: UInt16 = 58
  /// dnssec_chain (RFC 9102).
  package static let dnssecChain: UInt16 = 59
  /// next_protocol_negotiation, which ALPN took the place of.
  package static let nextProtocolNegotiation: UInt16 = 13172
  /// encrypted_client_hello (RFC 9849).
  package static let encryptedClientHello: UInt16 = 0xfe0d
  /// renegotiation_info (RFC 5746).
  package static let renegotiationInfo: UInt16 = 0xff01
}
