internal import CLibevent
internal import CLinux

/// A request to the admin port, without a body worth reading: GET or HEAD, and POST where that path takes it.
package struct HTTPRequest: Sendable {
  /// Whether something is to be done; otherwise the request only reads.
  package let isPost: Bool
  /// The path as sent, still percent-encoded; starts with `/`.
  package let path: String
  /// What follows `?`, still encoded; `nil` without one.
  package let query: String?
  /// The Accept field, `nil` without one.
  package let accept: String?
  /// The Authorization field, `nil` without one. A secret: for comparing, never for a log.
  package let authorization: String?
}

/// What the admin port answers.
package struct HTTPResponse: Sendable {
  /// The status code, 200–599.
  package var status: Int
  /// The Content-Type field.
  package var contentType: String
  /// Further fields. Names and values are ours, never a peer's.
  package var fields: [(name: String, value: String)] = []
  /// Sent unless the request was HEAD.
  package var body: [UInt8]

  /// An answer with a body of its own type.
  package init(status: Int, contentType: String, body: [UInt8]) {
    self.status = status
    self.contentType = contentType
    self.body = body
  }

  /// An answer in plain text, UTF-8.
  package init(status: Int = 200, text: String) {
    self.init(status: status, contentType: "text/plain; charset=utf-8", body: Array(text.utf8))
  }
}

/// A small HTTP/1.1 server on one loop (libevent's evhttp), for the admin port. GET and HEAD; POST for the paths that
/// are named, and 405 for it everywhere else.
@safe
package final class HTTPServer {
  /// Bytes of a request's line and fields; what browsers send is about 1 KiB.
  package static let maximalHeadSize = 16_384
  /// Bytes of a request's body, which nobody reads.
  package static let maximalBodySize = 4096
  /// Seconds a client may take for a request, or leave a connection idle.
  package static let timeout: Int32 = 30

  /// How long a failed accept keeps the listener from trying again, at most.
  private static let pause = Duration.seconds(1)

  private let socket: ListeningSocket
  private let loop: EventLoop
  private let server: OpaquePointer
  private let handler: (HTTPRequest) -> HTTPResponse
  private let posts: Set<String>
  private var listener: OpaquePointer?
  private var resumption: LoopTimer?

  /// Serves until the server is let go, on the loop's thread.
  ///
  /// - Parameters:
  ///   - posts: the paths that take POST.
  ///   - handler: called on the loop's thread; to answer at once.
  /// - Throws: `.descriptorsExhausted` when libevent or the system has no room.
  package init(
    _ socket: consuming ListeningSocket, loop: EventLoop, posts: Set<String> = [],
    handler: @escaping (HTTPRequest) -> HTTPResponse
  ) throws(IOError) {
    loop.preconditionOnLoop()
    // evhttp closes what it is given; the path of a UNIX socket is removed by ours.
    let duplicate = pinfold_duplicate(socket.descriptor)
    guard duplicate >= 0 else { throw IOError(duplicate) }
    guard let made = unsafe evhttp_new(loop.base) else {
      pinfold_close(Int32(duplicate))
      throw .descriptorsExhausted
    }
    guard let bound = unsafe evhttp_accept_socket_with_handle(made, Int32(duplicate)) else {
      unsafe evhttp_free(made)
      pinfold_close(Int32(duplicate))
      throw .descriptorsExhausted
    }
    self.socket = socket
    self.loop = loop
    unsafe server = made
    self.handler = handler
    self.posts = posts
    unsafe listener = evhttp_bound_socket_get_listener(bound)
    unsafe evhttp_set_max_headers_size(made, Self.maximalHeadSize)
    unsafe evhttp_set_max_body_size(made, Self.maximalBodySize)
    unsafe evhttp_set_allowed_methods(made, posts.isEmpty ? pinfold_http_methods : pinfold_http_methods_and_post)
    unsafe evhttp_set_timeout(made, Self.timeout)
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe evhttp_set_gencb(made, requested, context)
    unsafe evconnlistener_set_error_cb(listener, acceptFailed)
    resumption = LoopTimer(loop: loop, after: Self.pause, every: Self.pause) { [unowned self] in self.acceptAgain() }
  }

  deinit {
    unsafe evhttp_free(server)
  }

  /// Where it listens, with the port the system chose.
  package var endpoint: Endpoint { socket.endpoint }

  fileprivate func answer(_ request: OpaquePointer) {
    let asked = unsafe Self.read(request)
    var response: HTTPResponse
    if asked.isPost, !posts.contains(asked.path) {
      response = HTTPResponse(status: 405, text: "this path only reads; use GET\n")
      response.fields.append(("Allow", "GET, HEAD"))
    } else {
      response = handler(asked)
    }
    let headers = unsafe evhttp_request_get_output_headers(request)
    for (name, value) in response.fields + [("Content-Type", response.contentType), ("Cache-Control", "no-store")] {
      unsafe _ = evhttp_add_header(headers, name, value)
    }
    // evhttp sends what it is given even for HEAD, so it gets the length alone.
    let isHead = unsafe evhttp_request_get_command(request) == EVHTTP_REQ_HEAD
    unsafe _ = evhttp_add_header(headers, "Content-Length", String(response.body.count))
    let body = unsafe evbuffer_new()
    if !isHead { unsafe _ = response.body.withUnsafeBytes { unsafe evbuffer_add(body, $0.baseAddress, $0.count) } }
    unsafe evhttp_send_reply(request, Int32(clamping: response.status), nil, body)
    unsafe evbuffer_free(body)
  }

  private static func read(_ request: OpaquePointer) -> HTTPRequest {
    let uri = unsafe evhttp_request_get_evhttp_uri(request)
    let path = unsafe uri.flatMap { unsafe evhttp_uri_get_path($0) }.map { unsafe String(cString: $0) }
    let query = unsafe uri.flatMap { unsafe evhttp_uri_get_query($0) }.map { unsafe String(cString: $0) }
    let accept = unsafe evhttp_find_header(evhttp_request_get_input_headers(request), "Accept")
      .map { unsafe String(cString: $0) }
    let authorization = unsafe evhttp_find_header(evhttp_request_get_input_headers(request), "Authorization")
      .map { unsafe String(cString: $0) }
    let isPost = unsafe evhttp_request_get_command(request) == EVHTTP_REQ_POST
    return HTTPRequest(
      isPost: isPost, path: path ?? "/", query: query, accept: accept, authorization: authorization)
  }

  /// After a failed accept; does nothing to a listener that is accepting.
  private func acceptAgain() {
    if let listener = unsafe listener { unsafe _ = evconnlistener_enable(listener) }
  }
}

private func requested(request: OpaquePointer?, context: UnsafeMutableRawPointer?) {
  guard let request = unsafe request, let context = unsafe context else { return }
  unsafe Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue().answer(request)
}

/// Out of descriptors: asking again at once would only spin. The server's timer resumes.
private func acceptFailed(listener: OpaquePointer?, _: UnsafeMutableRawPointer?) {
  unsafe _ = evconnlistener_disable(listener)
}
