package import PinfoldWire

/// The clear messages of a TLS 1.3 handshake: what the transcript begins with.
package struct Hellos13: Sendable {
  /// The client's first hello.
  package let first: ClientHello
  /// A HelloRetryRequest and the second hello that answered it.
  package let retry: (request: ServerHello, second: ClientHello)?
  /// The ServerHello that chose.
  package let server: ServerHello

  /// Takes messages that were already read and held against each other (`ServerFlightReader` does).
  package init(first: ClientHello, retry: (request: ServerHello, second: ClientHello)? = nil, server: ServerHello) {
    self.first = first
    self.retry = retry
    self.server = server
  }

  /// The hello the ServerHello answered.
  package var client: ClientHello { retry?.second ?? first }

  /// The suite; nil where it is none that can be opened.
  package var suite: Suite13? { Suite13(rawValue: server.cipherSuite.id) }

  /// The transcript up to and including the ServerHello.
  func transcript(_ suite: Suite13) throws(TLSError) -> TranscriptHash {
    let hash = try TranscriptHash(
      suite, firstHello: first.message, retry: retry.map { ($0.request.message, $0.second.message) })
    try hash.add(server.message[...])
    return hash
  }
}
