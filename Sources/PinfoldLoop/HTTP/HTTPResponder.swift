internal import CLibevent

/// The answer that a request waits for. To be sent once; a second one is dropped.
///
/// `@unchecked Sendable`: may be carried by tasks, but is used on the loop's thread only, which `send` checks.
@safe
package final class HTTPResponder: @unchecked Sendable {  // One thread's, see above.
  /// The server's loop.
  package let loop: EventLoop
  private weak var server: HTTPServer?
  /// evhttp's request: alive until it is answered, also when its client has gone, or its server.
  private var request: OpaquePointer?

  init(_ request: OpaquePointer, server: HTTPServer, loop: EventLoop) {
    unsafe self.request = request
    self.server = server
    self.loop = loop
  }

  /// Sends the answer, or drops it when nobody waits for it any more.
  package func send(_ response: HTTPResponse) {
    loop.preconditionOnLoop()
    guard let request = unsafe request else { return }
    unsafe self.request = nil
    unsafe server?.forget(self, request)
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

  /// The server goes: it frees the requests of its connections, but not those whose client went before.
  func abandon() {
    if let request = unsafe request, unsafe evhttp_request_get_connection(request) == nil {
      unsafe evhttp_request_free(request)
    }
    unsafe request = nil
  }
}
