internal import CLibevent
internal import CLinux

/// A small HTTP/1.1 server on one loop (libevent's evhttp): for the admin port, which reads by GET and HEAD (405 for all
/// else, but for the paths that are named), and for sites that answer later, which see every method.
@safe
package final class HTTPServer {
  /// Bytes of a request's line and fields; what browsers send is about 1 KiB.
  package static let maximalHeadSize = 16_384
  /// Bytes of a request's body, which nobody reads.
  package static let maximalBodySize = 4096

  /// How many connections there are at a time, and how long each may take.
  package struct Limits: Sendable {
    /// Past these, the connection that waited longest for its client makes room for the next.
    package let connections: Int
    /// Time from a connection's beginning, or from an answer on, for that to be taken and the next request to be whole;
    /// and as much again for the site to answer. A connection that needs more is ended, however lively it is.
    package let time: Duration

    /// For a site that a few programs look at now and then.
    package static let few = Limits(connections: 64, time: .seconds(30))
    /// For a site that many programs ask.
    package static let many = Limits(connections: 512, time: .seconds(30))
  }

  /// Seconds that evhttp waits for each read and write. Any byte begins them anew.
  private static let pauseLimit: Int32 = 30
  /// How long a failed accept keeps the listener from trying again, at most.
  private static let pause = Duration.seconds(1)

  private let socket: ListeningSocket
  private let loop: EventLoop
  private let server: OpaquePointer
  private let handler: (HTTPRequest, HTTPResponder) -> Void
  private let connections: HTTPConnections
  /// Requests that are not answered yet.
  private var pending: [ObjectIdentifier: HTTPResponder] = [:]
  private var listener: OpaquePointer?
  private var resumption: LoopTimer?

  /// Serves until the server is let go, on the loop's thread.
  ///
  /// - Parameters:
  ///   - posts: the paths that take POST, and see every method.
  ///   - handler: called on the loop's thread; to answer at once.
  /// - Throws: `.descriptorsExhausted` when libevent or the system has no room.
  package convenience init(
    _ socket: consuming ListeningSocket, loop: EventLoop, posts: Set<String> = [], limits: Limits = .few,
    handler: @escaping (HTTPRequest) -> HTTPResponse
  ) throws(IOError) {
    try self.init(socket, loop: loop, posts: posts, limits: limits) { request, responder in
      responder.send(handler(request))
    }
  }

  /// The same, for a site of which some paths answer later.
  ///
  /// - Parameter responder: called on the loop's thread; to answer through what it is given.
  package convenience init(
    _ socket: consuming ListeningSocket, loop: EventLoop, posts: Set<String>, limits: Limits = .few,
    responder: @escaping (HTTPRequest, HTTPResponder) -> Void
  ) throws(IOError) {
    try self.init(socket, loop: loop, limits: limits) { request, answer in
      if request.method != .get, request.method != .head, !posts.contains(request.path) {
        var refusal = HTTPResponse(status: 405, text: "this path only reads; use GET\n")
        refusal.fields.append(("Allow", "GET, HEAD"))
        answer.send(refusal)
      } else {
        responder(request, answer)
      }
    }
  }

  /// Serves every method until the server is let go, on the loop's thread.
  ///
  /// - Parameter responder: called on the loop's thread; to answer through what it is given, sooner or later.
  /// - Throws: `.descriptorsExhausted` when libevent or the system has no room.
  package init(
    _ socket: consuming ListeningSocket, loop: EventLoop, limits: Limits = .many,
    responder: @escaping (HTTPRequest, HTTPResponder) -> Void
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
    handler = responder
    connections = HTTPConnections(loop: loop, limits: limits)
    unsafe listener = evhttp_bound_socket_get_listener(bound)
    unsafe evhttp_set_max_headers_size(made, Self.maximalHeadSize)
    unsafe evhttp_set_max_body_size(made, Self.maximalBodySize)
    unsafe evhttp_set_allowed_methods(made, pinfold_http_methods)
    // No limit to a request, see `pauseLimit`: `connections` has that.
    unsafe evhttp_set_timeout(made, Self.pauseLimit)
    unsafe connections.watch(made, listener)
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe evhttp_set_gencb(made, requested, context)
    unsafe evconnlistener_set_error_cb(listener, acceptFailed)
    resumption = LoopTimer(loop: loop, after: Self.pause, every: Self.pause) { [unowned self] in self.acceptAgain() }
  }

  deinit {
    for responder in pending.values { responder.abandon() }
    connections.leave()
    unsafe evhttp_free(server)
  }

  /// Where it listens, with the port the system chose.
  package var endpoint: Endpoint { socket.endpoint }

  /// How many connections there are.
  var connectionCount: Int { connections.count }

  fileprivate func answer(_ request: OpaquePointer) {
    unsafe connections.began(evhttp_request_get_connection(request))
    let responder = unsafe HTTPResponder(request, server: self, loop: loop)
    pending[ObjectIdentifier(responder)] = responder
    handler(unsafe Self.read(request), responder)
  }

  /// The responder is about to answer this request.
  func forget(_ responder: HTTPResponder, _ request: OpaquePointer) {
    pending[ObjectIdentifier(responder)] = nil
    unsafe connections.answered(evhttp_request_get_connection(request))
  }

  private static func read(_ request: OpaquePointer) -> HTTPRequest {
    let uri = unsafe evhttp_request_get_evhttp_uri(request)
    let path = unsafe uri.flatMap { unsafe evhttp_uri_get_path($0) }.map { unsafe String(cString: $0) }
    let query = unsafe uri.flatMap { unsafe evhttp_uri_get_query($0) }.map { unsafe String(cString: $0) }
    let fields = unsafe evhttp_request_get_input_headers(request)
    let accept = unsafe evhttp_find_header(fields, "Accept").map { unsafe String(cString: $0) }
    let authorization = unsafe evhttp_find_header(fields, "Authorization").map { unsafe String(cString: $0) }
    let method: HTTPRequest.Method =
      switch unsafe evhttp_request_get_command(request) {
      case EVHTTP_REQ_GET: .get
      case EVHTTP_REQ_HEAD: .head
      case EVHTTP_REQ_POST: .post
      default: .other
      }
    return HTTPRequest(
      method: method, path: path ?? "/", query: query, accept: accept, authorization: authorization)
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
