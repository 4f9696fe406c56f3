/// A whole ServerHello…ServerHelloDone of TLS 1.0–1.2, read but not judged.
///
/// Ranges index `handshake`; use `bytes(_:)`.
package struct ServerFlight: Sendable {
  /// How the key behind the certificate is to be proven.
  package enum KeyProof: Equatable, Sendable {
    /// By this signature over both randoms and the parameters.
    case signature(ServerKeyExchange, SignatureKey)
    /// By nothing in this flight: only the key's owner can finish a static RSA handshake.
    case keyTransport
  }

  /// All handshake messages of the server so far, put together from their records.
  package let handshake: [UInt8]
  /// The ServerHello.
  package let serverHello: ServerHello
  /// DER certificates as sent, leaf first; empty when there is a raw public key.
  package let certificates: [Range<Int>]
  /// The SubjectPublicKeyInfo of a raw public key (RFC 7250).
  package let rawPublicKey: Range<Int>?
  /// How the key is proven.
  package let keyProof: KeyProof
  /// Content of the CertificateStatus message (RFC 6066 §8), its type byte included.
  package let certificateStatus: Range<Int>?
  /// Whether the server asks for a client certificate.
  package let requestsClientCertificate: Bool
  /// Bytes of the Certificate message, its header included.
  package let certificateMessageLength: Int
  /// Types of the messages in order.
  package let messageTypes: [UInt8]
  /// Stream offset behind the record that ends the flight.
  package let end: Int

  /// The bytes of a range.
  package func bytes(_ range: Range<Int>) -> ArraySlice<UInt8> { handshake[range] }

  /// The DER of each certificate, leaf first.
  package var certificateBytes: [ArraySlice<UInt8>] { certificates.map { handshake[$0] } }
}

/// The clear part of a resumed TLS 1.0–1.2 handshake: ServerHello, perhaps a ticket, ChangeCipherSpec, and the
/// encrypted Finished behind it.
package struct ResumedHandshake: Sendable {
  /// The ServerHello; its session id is the client's.
  package let serverHello: ServerHello
  /// The fresh ticket, if the server sent one (RFC 5077 §3.3). It is not authenticated yet.
  package let newTicket: [UInt8]?
  /// Stream offset behind the encrypted Finished: up to here the bytes are to be held.
  package let end: Int
}
