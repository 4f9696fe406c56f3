/// What a ClientHello offers (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2), with its bytes as received.
///
/// Ranges count from the first byte of `message`, which is the handshake header. Everything here was said by the client
/// and nothing of it is proven.
///
/// A class, since it goes through many hands: a copy of so many lists costs a reference count for each.
///
/// `@unchecked Sendable`: only its reader changes it, before it hands it out.
package final class ClientHello: @unchecked Sendable {  // Complete when it is handed out, see above.
  /// A key share: its group and where the key lies in `message`.
  package struct KeyShare: Equatable, Sendable {
    /// The named group.
    package let group: UInt16
    /// The public key, at least one byte.
    package let key: Range<Int>
  }

  /// The records that carried the hello, headers included: stream offsets `start` to `end`.
  package internal(set) var records: [UInt8] = []
  /// Stream offset of the first record that carried a part of the hello.
  package internal(set) var start = 0
  /// Stream offset behind the record that ends it.
  package internal(set) var end = 0
  /// Version field of the first of those records.
  package internal(set) var recordVersion: UInt16 = 0
  /// How many records there are.
  package internal(set) var recordCount = 0
  /// Stream ranges of 0-RTT records that stood before a second hello and are not to be passed on.
  package internal(set) var droppedEarlyData: [Range<Int>] = []
  /// Stream range of a ChangeCipherSpec record that stood before a second hello and goes with it.
  package internal(set) var changeCipherSpec: Range<Int>?

  /// The handshake message, its four-byte header included, as the transcript hashes it.
  package internal(set) var message: [UInt8]
  /// `legacy_version`: the highest version of a client that sends no supported_versions.
  package internal(set) var legacyVersion: UInt16 = 0
  /// The 32 random bytes.
  package internal(set) var randomRange = 0..<0
  /// `legacy_session_id`, 0–32 bytes.
  package internal(set) var sessionIDRange = 0..<0
  /// Cipher suites in order, signalling and GREASE values included.
  package internal(set) var cipherSuites: [UInt16] = []
  /// Compression methods; 0 is among them.
  package internal(set) var compressionMethods: [UInt8] = []
  /// All extensions in order.
  package internal(set) var extensions: [TLSExtension] = []
  /// The host name asked for, in the clear.
  package internal(set) var serverName = ServerNameIndication.missing
  /// supported_versions in order; empty when the extension is missing.
  package internal(set) var supportedVersions: [UInt16] = []
  /// supported_groups in order.
  package internal(set) var supportedGroups: [UInt16] = []
  /// key_share entries in order.
  package internal(set) var keyShares: [KeyShare] = []
  /// signature_algorithms in order.
  package internal(set) var signatureAlgorithms: [UInt16] = []
  /// signature_algorithms_cert in order.
  package internal(set) var signatureAlgorithmsCert: [UInt16] = []
  /// Signature schemes of delegated_credential (RFC 9345) in order.
  package internal(set) var delegatedCredentialAlgorithms: [UInt16] = []
  /// Identities of pre_shared_key.
  package internal(set) var pskIdentities: [Range<Int>] = []
  /// Binders of pre_shared_key, as many as identities.
  package internal(set) var pskBinders: [Range<Int>] = []
  /// psk_key_exchange_modes: 0 is psk_ke, 1 psk_dhe_ke.
  package internal(set) var pskModes: [UInt8] = []
  /// compress_certificate algorithms (RFC 8879) in order.
  package internal(set) var certificateCompression: [UInt16] = []
  /// server_certificate_type values (RFC 7250); empty when the extension is missing.
  package internal(set) var serverCertificateTypes: [UInt8] = []
  /// client_certificate_type values (RFC 7250); empty when the extension is missing.
  package internal(set) var clientCertificateTypes: [UInt8] = []
  /// Content of session_ticket, which may be empty; nil when the extension is missing.
  package internal(set) var sessionTicketRange: Range<Int>?
  /// Content of the ALPN list, without the list's own length.
  package internal(set) var alpnRange: Range<Int>?
  /// Whether an outer encrypted_client_hello is there, real or GREASE: they cannot be told apart.
  package internal(set) var hasEncryptedClientHello = false

  /// Reads a whole ClientHello message, header included. Offsets of errors count from the first byte of `message`.
  init(message: [UInt8]) throws(WireError) {
    self.message = message
    try read()
  }
}
