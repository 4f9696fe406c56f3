/// The limits of everything a peer may make Pinfold keep or read. Each number states its unit and its reason.
package enum WireLimits {
  /// Bytes of a CONNECT head, its blank line included. Real ones take 100–600; a Kerberos token can take 5,000.
  package static let connectHead = 8 * 1024
  /// Bytes of a ClientHello message. The largest seen is 2.3 KB; post-quantum key shares and tickets leave room to
  /// 64 KiB, beyond which servers refuse as well.
  package static let helloMessage = 64 * 1024
  /// Bytes of the records of one ClientHello as received: room for a message of 2 KB cut into one-byte records, and
  /// for the largest message in records of ordinary size.
  package static let helloRecords = 96 * 1024
  /// Bytes of 0-RTT data dropped between two hellos, beside the room for the second hello (`helloRecords`). RFC 8446
  /// §4.2.10 lets a server announce more, yet common servers announce 16 KiB.
  package static let earlyData = 128 * 1024
  /// Bytes of the server held back until the verdict, records included. Certificates of 37 KB and certificate requests
  /// of 15 KB occur.
  package static let heldFlight = 256 * 1024
  /// Bytes of one handshake message of the server: what OpenSSL and GnuTLS take is about 100 KB.
  package static let serverMessage = 128 * 1024
  /// Bytes of the server's second flight up to its Finished: a ticket holds at most 65,535 (RFC 5077 §3.3).
  package static let sessionTicketFlight = 80 * 1024
  /// Bytes a CompressedCertificate may open to (RFC 8879 §4 asks for such a limit).
  package static let uncompressedCertificate = 128 * 1024
  /// Certificates in one message. OpenSSL stops building a chain at 100; a list that long is no chain.
  package static let certificates = 64
  /// Extensions in one message: about four times what the registry holds, so that looking for duplicates stays cheap.
  package static let extensions = 256
  /// Bytes of a plaintext record (RFC 8446 §5.1, RFC 5246 §6.2.1).
  package static let plaintextRecord = 1 << 14
  /// Bytes of a protected TLS 1.3 record (RFC 8446 §5.2).
  package static let protectedRecord13 = (1 << 14) + 256
  /// Bytes of a protected record of TLS 1.2 and older (RFC 5246 §6.2.3).
  package static let protectedRecord12 = (1 << 14) + 2048
}
