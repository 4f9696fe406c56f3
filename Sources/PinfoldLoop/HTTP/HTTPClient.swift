package import PinfoldModel

/// Fetches documents over HTTP/1.1 (RFC 9112), one connection each (libevent's evhttp and bufferevent_openssl).
///
/// Bound to its loop and used on its thread. Redirects are not followed, no cookie, cache or proxy is known.
package final class HTTPClient {
  /// Bytes of a reply's status line and fields; what servers send is about 1 KiB.
  package static let maximalHeadSize = 16_384
  /// Addresses of a host that are tried, one after the other.
  package static let maximalAddresses = 4

  private let loop: EventLoop
  private let resolver: Resolver

  /// A client whose names are resolved by `resolver`, of the same loop.
  package init(loop: EventLoop, resolver: Resolver) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.resolver = resolver
  }

  /// GETs a document, whole or not at all.
  ///
  /// - Parameters:
  ///   - fields: further fields of the request, in visible ASCII. `Host` and `Connection: close` are sent in any case.
  ///   - limit: bytes of the body at most.
  ///   - deadline: for the whole of it, from the name's resolution to the last byte.
  ///   - security: makes the TLS session of an `https` URL, which is refused without; not asked for `http`.
  /// - Returns: the reply, whatever its status.
  /// - Throws: `HTTPFetchError`, which names the step. A body that ends early, or whose TLS connection ends without its
  ///   close_notify before a length was reached, is `truncated`; without TLS, a body without a length ends with its
  ///   connection, and nobody can tell whether it is whole. What a server sends only when asked to is not understood:
  ///   chunk extensions, and interim replies, behind which the reply itself may or may not be found.
  package func get(
    _ url: HTTPURL, fields: [(name: String, value: String)] = [], limit: Int, deadline: Deadline,
    security: (any TLSSessionSource)? = nil
  ) async throws(HTTPFetchError) -> HTTPReply {
    loop.preconditionOnLoop()
    guard fields.allSatisfy({ Self.isFieldName($0.name) && Self.isFieldValue($0.value) }) else { throw .malformed }
    var left = try await addresses(of: url.authority.host, deadline)[...]
    while let address = left.popFirst() {
      if Task.isCancelled { throw .cancelled }
      let target = SocketAddress(address, port: url.authority.port)
      let exchange = HTTPExchange(url, at: target, loop: loop, limit: limit, deadline: deadline)
      // The last address has all the time there is; those before it leave some to their successors.
      let slice = left.isEmpty ? deadline : halfway(to: deadline)
      do throws(HTTPFetchError) {
        return try await exchange.run(fields: fields, connectUntil: slice, security: security)
      } catch .connect where !left.isEmpty {
        continue
      }
    }
    throw .resolve(.notFound)
  }

  private func addresses(of host: HostName, _ deadline: Deadline) async throws(HTTPFetchError) -> [IPAddress] {
    do throws(ResolveError) {
      let found = try await resolver.resolve(host, deadline: deadline)
      return Array(Dialer.interleaved(found).prefix(Self.maximalAddresses))
    } catch .timedOut {
      throw .timedOut(.resolve)
    } catch {
      throw .resolve(error)
    }
  }

  private func halfway(to deadline: Deadline) -> Deadline {
    loop.deadline(after: deadline.duration(since: loop.now) / 2)
  }

  /// A token (RFC 9110 §5.6.2), as far as anybody uses it.
  private static func isFieldName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x7a).contains($0) || $0 == 0x2d }
  }

  /// Nothing that could begin another line.
  private static func isFieldValue(_ value: String) -> Bool {
    value.utf8.allSatisfy { (0x20...0x7e).contains($0) }
  }
}
