import COpenSSL
import PinfoldModel

/// One handshake of Pinfold's own, without sockets: bytes in, steps out.
///
/// Owns an `SSL` (SSL_free(3)), which owns its two memory BIOs. For one thread at a time. The chain is not verified
/// here: `ChainVerifier` judges what the result holds.
///
/// `idle` → `start()` → `running` → `receive(_:)`… → `done`; in `done` every call fails.
@safe package final class ProbeSession {
  /// Most bytes read from a server: twice the largest flight that OpenSSL's clients take.
  package static let inputLimit = 262_144

  private enum State { case idle, running, done }

  private let context: ProbeContext
  private let raw: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer
  private var state = State.idle
  private var received = 0

  init(_ context: ProbeContext, _ offer: ProbeOffer) throws(TLSError) {
    ErrorQueue.clear()
    guard let raw = unsafe SSL_new(context.raw) else { throw .drained("SSL_new") }
    guard let input = unsafe BIO_new(BIO_s_mem()) else {
      unsafe SSL_free(raw)
      throw .drained("BIO_new")
    }
    guard let output = unsafe BIO_new(BIO_s_mem()) else {
      unsafe BIO_free(input)
      unsafe SSL_free(raw)
      throw .drained("BIO_new")
    }
    unsafe SSL_set_bio(raw, input, output)
    unsafe SSL_set_connect_state(raw)
    self.context = context
    unsafe self.raw = raw
    unsafe self.input = input
    unsafe self.output = output
    if case .name(let name) = offer.serverName, unsafe pinfold_set_server_name(raw, name) != 1 {
      throw .drained("SSL_set_tlsext_host_name")
    }
    // This one call returns 0 on success (SSL_set_alpn_protos(3)).
    if !offer.alpn.isEmpty,
      unsafe SSL_set_alpn_protos(raw, offer.alpn, UInt32(clamping: offer.alpn.count)) != 0
    {
      throw .drained("SSL_set_alpn_protos")
    }
    if offer.profile.requestsStatus, unsafe pinfold_request_status(raw) != 1 {
      throw .drained("SSL_set_tlsext_status_type")
    }
  }

  deinit { unsafe SSL_free(raw) }

  /// The ClientHello to send first.
  package func start() -> ProbeStep {
    guard state == .idle else { return fail("probe started twice") }
    state = .running
    return advance()
  }

  /// Takes bytes of the server.
  package func receive(_ bytes: [UInt8]) -> ProbeStep {
    guard state == .running else { return fail("probe is not running") }
    received += bytes.count
    guard received <= Self.inputLimit, let count = Int32(exactly: bytes.count) else {
      return fail("server sent more than \(Self.inputLimit) bytes")
    }
    ErrorQueue.clear()
    if count > 0, unsafe BIO_write(input, bytes, count) != count { return fail(ErrorQueue.drain()) }
    return advance()
  }

  /// The server closed the connection.
  package func receiveEnd() -> ProbeStep { fail("connection closed in the handshake") }

  /// SSL_do_handshake(3), folded into three cases.
  private func advance() -> ProbeStep {
    ErrorQueue.clear()
    let code = unsafe SSL_do_handshake(raw)
    if code == 1 { return finish() }
    switch unsafe SSL_get_error(raw, code) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
      let bytes = drain()
      return bytes.isEmpty ? .needMore : .send(bytes)
    default:
      return fail(ErrorQueue.drain())
    }
  }

  private func finish() -> ProbeStep {
    let certificates = unsafe Self.certificates(SSL_get_peer_cert_chain(raw))
    guard !certificates.isEmpty, let suite = unsafe SSL_get_current_cipher(raw),
      let version = UInt16(exactly: unsafe SSL_version(raw))
    else { return fail("handshake without a certificate") }
    var selected: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    unsafe SSL_get0_alpn_selected(raw, &selected, &length)
    let alpn = unsafe selected.map { unsafe Array(UnsafeBufferPointer(start: $0, count: Int(length))) }
    let result = unsafe ProbeResult(
      certificates: certificates, version: version, cipherSuite: SSL_CIPHER_get_protocol_id(suite), alpn: alpn)
    state = .done
    ErrorQueue.clear()
    unsafe SSL_shutdown(raw)
    ErrorQueue.clear()
    return .finished(result, farewell: drain())
  }

  /// Empty where one certificate cannot be written down, so that no part stands for the whole.
  private static func certificates(_ stack: OpaquePointer?) -> [[UInt8]] {
    guard let stack = unsafe stack else { return [] }
    let count = unsafe pinfold_x509_stack_count(stack)
    var result: [[UInt8]] = []
    for index in 0..<max(0, count) {
      guard let certificate = unsafe pinfold_x509_stack_at(stack, index),
        let der = try? unsafe Certificate.encoding(of: certificate)
      else { return [] }
      result.append(der)
    }
    return result
  }

  private func fail(_ detail: String) -> ProbeStep {
    state = .done
    return .failed(detail: detail.isEmpty ? "handshake failed" : detail, farewell: drain())
  }

  /// Everything OpenSSL wants to send.
  private func drain() -> [UInt8] {
    guard let count = Int32(exactly: unsafe pinfold_bio_pending(output)), count > 0 else { return [] }
    return unsafe [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialised in
      initialised = Int(max(0, unsafe BIO_read(output, buffer.baseAddress, count)))
    }
  }
}
