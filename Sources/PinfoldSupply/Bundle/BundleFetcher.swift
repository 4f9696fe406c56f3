package import PinfoldLoop
package import PinfoldModel

/// Fetches bundles from their URLs. What comes is bytes: nothing is believed before it is verified.
package struct BundleFetcher {
  /// Seconds for one bundle, from the name's resolution to its last byte.
  package static let seconds = 60
  /// Bytes of an entity tag that is sent back; servers use some 40.
  private static let tagLimit = 256

  private let client: HTTPClient
  private let security: any TLSSessionSource
  private let limit: Int

  /// Fetches by `client`, over TLS sessions of `security`, bodies of at most `limit` bytes.
  package init(client: HTTPClient, security: any TLSSessionSource, limit: Int) {
    self.client = client
    self.security = security
    self.limit = limit
  }

  /// What a server had to say.
  package enum Answer: Sendable {
    /// A body, and what the server calls it.
    case body([UInt8], etag: String?)
    /// The body that was called `etag` is still the one.
    case unchanged
  }

  /// Asks for the bundle, or, with an `etag`, for one that is not the one known. Every status but 200, and 304 to an
  /// `etag`, is an error.
  package func fetch(
    _ url: HTTPURL, etag: String?, deadline: Deadline
  ) async throws(HTTPFetchError) -> Answer {
    var fields = [(name: "Accept", value: "application/json, application/octet-stream;q=0.9, */*;q=0.1")]
    if let etag { fields.append((name: "If-None-Match", value: etag)) }
    let reply = try await client.get(url, fields: fields, limit: limit, deadline: deadline, security: security)
    switch reply.status {
    case 200: return .body(reply.body, etag: reply.field("ETag").flatMap(Self.tag))
    case 304 where etag != nil: return .unchanged
    default: throw .status(reply.status)
    }
  }

  /// An entity tag (RFC 9110 §8.8.3) that can be sent back as it is; `nil` for anything else.
  private static func tag(_ text: String) -> String? {
    let opaque = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
    guard text.utf8.count <= tagLimit, opaque.utf8.count >= 2, opaque.hasPrefix("\""), opaque.hasSuffix("\""),
      opaque.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else { return nil }
    return text
  }
}
