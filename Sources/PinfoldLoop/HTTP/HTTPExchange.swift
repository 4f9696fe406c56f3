internal import CLibevent
internal import Glibc
internal import PinfoldModel

/// One request to one address, and its reply.
///
/// `run` is called once. It owns the connection; what libevent holds of the exchange is unretained, and gone with the
/// connection before `run` returns. Whatever comes first is the outcome: the reply, an error, the deadline, `cancel`.
@safe
final class HTTPExchange: TimerEntry {
  private typealias Outcome = Result<HTTPReply, HTTPFetchError>

  private let url: HTTPURL
  private let address: SocketAddress
  private let loop: EventLoop
  private let limit: Int
  private let deadline: Deadline

  private var security: (any TLSSessionSource)?
  private var connection: OpaquePointer?
  private var transport: OpaquePointer?
  /// evhttp's own callback for events while connecting, and its argument.
  private var connecting: bufferevent_event_cb?
  private var connectingContext: UnsafeMutableRawPointer?
  private var isConnected = false
  private var failure: HTTPFetchError?
  private var outcome: Outcome?
  private var continuation: UnsafeContinuation<Void, Never>?

  init(_ url: HTTPURL, at address: SocketAddress, loop: EventLoop, limit: Int, deadline: Deadline) {
    self.url = url
    self.address = address
    self.loop = loop
    self.limit = limit
    self.deadline = deadline
    super.init(wheel: loop.wheel)
  }

  /// Connects, asks, and waits for the whole reply.
  ///
  /// - Parameter connectUntil: when another address is to have its turn, if this one has not taken the connection.
  func run(
    fields: [(name: String, value: String)], connectUntil: Deadline, security: (any TLSSessionSource)?
  ) async throws(HTTPFetchError) -> HTTPReply {
    loop.preconditionOnLoop()
    self.security = security
    defer { end() }
    try connect()
    try ask(fields)
    schedule(due: connectUntil.nanoseconds)
    // Lent to a closure that is called on any thread, which sends it back to the loop's own unread.
    nonisolated(unsafe) let lent = self
    await withTaskCancellationHandler {
      await finished()
    } onCancel: {
      unsafe lent.loop.execute { unsafe lent.finish(.failure(.cancelled)) }
    }
    guard let outcome else { throw .cancelled }
    return try outcome.get()
  }

  private func finished() async {
    guard outcome == nil else { return }
    unsafe await withUnsafeContinuation { unsafe continuation = $0 }
  }

  private func finish(_ result: Outcome) {
    guard outcome == nil else { return }
    outcome = result
    unsafe continuation?.resume()
    unsafe continuation = nil
  }

  /// Closes the connection. Not to be called by one of its callbacks.
  private func end() {
    due = .max
    if let connection = unsafe connection { unsafe evhttp_connection_free(connection) }
    unsafe connection = nil
    unsafe transport = nil
  }

  // MARK: Asking

  private func connect() throws(HTTPFetchError) {
    var made: OpaquePointer?
    if url.isSecure {
      guard let security else { throw .tls("no trusted authorities") }
      do throws(TLSSessionError) {
        let session = try security.session(for: url.authority.host)
        unsafe made = bufferevent_openssl_socket_new(
          loop.base, -1, session.take(), BUFFEREVENT_SSL_CONNECTING, pinfold_bev_options)
      } catch {
        throw .tls(error.text)
      }
    } else {
      unsafe made = bufferevent_socket_new(loop.base, -1, pinfold_bev_options)
    }
    guard let made = unsafe made else { throw .connect(.descriptorsExhausted) }
    guard
      let connection = unsafe evhttp_connection_base_bufferevent_new(
        loop.base, nil, made, address.address.text, address.port)
    else {
      unsafe bufferevent_free(made)
      throw .connect(.descriptorsExhausted)
    }
    unsafe transport = made
    unsafe self.connection = connection
    unsafe evhttp_connection_set_max_headers_size(connection, HTTPClient.maximalHeadSize)
    unsafe evhttp_connection_set_max_body_size(connection, limit)
    unsafe evhttp_connection_set_retries(connection, 0)
    // evhttp's own limits on each step give way to the one deadline.
    unsafe evhttp_connection_set_timeout(connection, Int32.max)
  }

  private func ask(_ fields: [(name: String, value: String)]) throws(HTTPFetchError) {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    guard let request = unsafe evhttp_request_new(replied, context) else { throw .connect(.descriptorsExhausted) }
    unsafe evhttp_request_set_error_cb(request, replyFailed)
    let headers = unsafe evhttp_request_get_output_headers(request)
    let own = [("Host", url.hostField), ("User-Agent", "pinfold/\(Release.version)"), ("Connection", "close")]
    for (name, value) in own + fields.map({ ($0.name, $0.value) }) {
      unsafe _ = evhttp_add_header(headers, name, value)
    }
    // The request is libevent's from here on.
    guard unsafe evhttp_make_request(connection, request, EVHTTP_REQ_GET, url.target) == 0 else {
      throw failure ?? .connect(IOError(-Int(pinfold_last_errno())))
    }
    unsafe watchConnecting(context)
  }

  /// evhttp says only that it failed to connect, not in which step nor why; so its own callback for that is called by
  /// ours, which looks first. Once connected it sets others.
  private func watchConnecting(_ context: UnsafeMutableRawPointer) {
    var read: bufferevent_data_cb?
    var write: bufferevent_data_cb?
    unsafe bufferevent_getcb(transport, &read, &write, &connecting, &connectingContext)
    unsafe bufferevent_setcb(transport, read, write, connectionChanged, context)
  }

  // MARK: Events

  override func timerFired() {
    let now = loop.now
    guard now >= deadline else {
      // This address had its part of the time. A connection that stands keeps the rest.
      guard !isConnected, !hasPeer else { return schedule(due: deadline.nanoseconds) }
      return finish(.failure(.connect(.timedOut)))
    }
    finish(.failure(.timedOut(isConnected ? .reply : url.isSecure && hasPeer ? .tls : .connect)))
  }

  private var hasPeer: Bool { unsafe pinfold_has_peer(bufferevent_getfd(transport)) == 1 }

  func changed(_ events: Int16) {
    let code = pinfold_last_errno()
    if events & pinfold_bev_connected != 0 {
      isConnected = true
    } else {
      failure = connectFailure(code)
    }
    unsafe connecting?(transport, events, connectingContext)
  }

  /// TCP's errors are told by their number, which a handshake cannot end with; everything else is the handshake's.
  private func connectFailure(_ code: Int32) -> HTTPFetchError {
    let error = IOError(-Int(code))
    guard url.isSecure, let security, let session = unsafe bufferevent_openssl_get_ssl(transport) else {
      return .connect(error)
    }
    // Where OpenSSL had no error to tell, libevent puts an SSL_ERROR_ number in its place.
    let told = UInt(unsafe bufferevent_get_openssl_error(transport))
    let reason = told < 256 ? 0 : told
    if reason == 0, [.refused, .unreachable, .timedOut, .descriptorsExhausted].contains(error), !hasPeer {
      return .connect(error)
    }
    return .tls(unsafe security.failure(of: session, code: reason))
  }

  /// evhttp's own word comes last: for a failed handshake it has none of its own.
  func failed(_ error: evhttp_request_error) {
    guard failure == nil else { return }
    failure =
      switch error {
      case EVREQ_HTTP_INVALID_HEADER: .malformed
      case EVREQ_HTTP_DATA_TOO_LONG: .tooLarge(limit: limit)
      default: .truncated
      }
  }

  func answered(_ request: OpaquePointer?) {
    guard failure == nil, let request = unsafe request else { return finish(.failure(failure ?? .truncated)) }
    let status = Int(unsafe evhttp_request_get_response_code(request))
    guard status > 0 else { return finish(.failure(.connect(.unreachable))) }
    guard (100...999).contains(status) else { return finish(.failure(.malformed)) }
    let buffer = unsafe evhttp_request_get_input_buffer(request)
    let count = unsafe evbuffer_get_length(buffer)
    guard count <= limit else { return finish(.failure(.tooLarge(limit: limit))) }
    let body = unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, used in
      unsafe used = max(0, evbuffer_copyout(buffer, bytes.baseAddress, count))
    }
    finish(.success(HTTPReply(status: status, fields: unsafe Self.fields(of: request), body: body)))
  }

  private static func fields(of request: OpaquePointer) -> [HTTPReply.Field] {
    var result: [HTTPReply.Field] = []
    var next = unsafe evhttp_request_get_input_headers(request)?.pointee.tqh_first
    while let entry = unsafe next {
      if let name = unsafe entry.pointee.key, let value = unsafe entry.pointee.value {
        result.append(unsafe HTTPReply.Field(name: String(cString: name), value: String(cString: value)))
      }
      unsafe next = entry.pointee.next.tqe_next
    }
    return result
  }
}

private func replied(request: OpaquePointer?, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue().answered(request)
}

private func replyFailed(error: evhttp_request_error, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue().failed(error)
}

private func connectionChanged(_: OpaquePointer?, events: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue().changed(events)
}
