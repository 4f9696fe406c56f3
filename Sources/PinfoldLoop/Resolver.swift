internal import CLibevent
internal import Glibc
package import PinfoldModel

/// Why a name could not be turned into addresses.
package enum ResolveError: Error, Hashable, Sendable {
  /// The name does not exist, or has no address.
  case notFound
  /// The deadline passed, or the servers did not answer.
  case timedOut
  /// The servers failed, gave nonsense, or there is none.
  case failed
  /// Too many look-ups are waiting already.
  case overloaded
  /// The client for whom it was asked left, or its tunnel is being ended.
  case departed

  /// A few words for a log line.
  package var text: String {
    switch self {
    case .notFound: "name not found"
    case .timedOut: "name resolution timed out"
    case .failed: "name resolution failed"
    case .overloaded: "too many name look-ups"
    case .departed: "nobody waits for the name any more"
    }
  }
}

/// Turns names into addresses on one loop, by the hosts file and the servers of resolv.conf (libevent's evdns).
///
/// Asks for A and AAAA at once. Bound to its loop and used on its thread; to be let go there, with no look-up waiting.
@safe
package final class Resolver {
  /// Look-ups that may wait at once per loop; one more is refused.
  package static let maximalCount = 1024
  /// Addresses taken from one answer; more would only prolong a failing dial.
  package static let maximalAddresses = 32

  private let loop: EventLoop
  private let base: OpaquePointer
  private var waiting = 0

  /// - Parameters:
  ///   - hostsFile: hosts(5), read once.
  ///   - configuration: resolv.conf(5), read once; without a usable server only the hosts file answers.
  /// - Throws: `.descriptorsExhausted` when libevent cannot set up.
  package init(
    loop: EventLoop, hostsFile: String = "/etc/hosts", configuration: String = "/etc/resolv.conf"
  ) throws(IOError) {
    loop.preconditionOnLoop()
    guard let made = unsafe evdns_base_new(loop.base, pinfold_dns_base_flags) else {
      throw .descriptorsExhausted
    }
    self.loop = loop
    unsafe base = made
    unsafe _ = evdns_base_resolv_conf_parse(base, pinfold_dns_options, configuration)
    // As many questions on the wire as look-ups have, two each: with libevent's own limit of 64 a few names that nobody
    // answers for would hold up all others.
    unsafe _ = evdns_base_set_option(base, "max-inflight:", String(2 * Self.maximalCount))
    unsafe _ = evdns_base_load_hosts(base, hostsFile)
  }

  deinit {
    unsafe evdns_base_free(base, 1)
  }

  /// The addresses of a host, at least one, in the order the answer gave; a literal is its own address.
  ///
  /// - Parameter client: a socket whose peer going away, or that is cancelled, ends the wait.
  package func resolve(
    _ host: HostName, deadline: Deadline, watching client: StreamSocket? = nil
  ) async throws(ResolveError) -> [IPAddress] {
    loop.preconditionOnLoop()
    if case .address(let address) = host { return [address] }
    guard waiting < Self.maximalCount else { throw .overloaded }
    waiting += 1
    defer { waiting -= 1 }
    let lookUp = LookUp(wheel: loop.wheel)
    if let client, !client.watchDeparture({ lookUp.end(.departed) }) { throw .departed }
    defer { client?.endWatch() }
    let outcome = unsafe await withUnsafeContinuation { continuation in
      unsafe lookUp.start(host.text, base: base, deadline, continuation)
    }
    return try outcome.get()
  }
}

/// One question. libevent answers it exactly once, also when it is cancelled; the object is kept alive until then.
@safe
private final class LookUp: TimerEntry {
  private var continuation: UnsafeContinuation<Result<[IPAddress], ResolveError>, Never>?
  private var request: OpaquePointer?
  private var hasAnswered = false
  /// Why it was cancelled.
  private var ending: ResolveError?

  func start(
    _ name: String, base: OpaquePointer, _ deadline: Deadline,
    _ continuation: UnsafeContinuation<Result<[IPAddress], ResolveError>, Never>
  ) {
    unsafe self.continuation = continuation
    var hints = unsafe pinfold_stream_hints()
    let context = unsafe Unmanaged.passRetained(self)
    // Answers from the hosts file come before this returns, and then there is no request to cancel.
    let request = unsafe evdns_getaddrinfo(base, name, nil, &hints, lookUpAnswered, context.toOpaque())
    guard !hasAnswered else { return }
    unsafe self.request = request
    schedule(due: deadline.nanoseconds)
  }

  override func timerFired() { end(.timedOut) }

  /// Has libevent answer soon, with EVUTIL_EAI_CANCEL.
  func end(_ error: ResolveError) {
    guard ending == nil, let request = unsafe request else { return }
    ending = error
    unsafe evdns_getaddrinfo_cancel(request)
  }

  func answered(_ code: Int32, _ list: UnsafeMutablePointer<addrinfo>?) {
    hasAnswered = true
    unsafe request = nil
    due = .max
    let addresses = unsafe Self.addresses(list)
    let result: Result<[IPAddress], ResolveError> =
      switch code {
      case 0: addresses.isEmpty ? .failure(.notFound) : .success(addresses)
      case EVUTIL_EAI_NONAME, EVUTIL_EAI_NODATA: .failure(.notFound)
      case EVUTIL_EAI_CANCEL: .failure(ending ?? .failed)
      default: .failure(.failed)
      }
    unsafe continuation?.resume(returning: result)
    unsafe continuation = nil
  }

  private static func addresses(_ list: UnsafeMutablePointer<addrinfo>?) -> [IPAddress] {
    var result: [IPAddress] = []
    var next = unsafe list
    while let entry = unsafe next, result.count < Resolver.maximalAddresses {
      var bytes: [UInt8] = Array(repeating: 0, count: 16)
      let count = unsafe pinfold_address_bytes(entry, &bytes)
      if let address = IPAddress(bytes: Array(bytes.prefix(Int(count)))), !result.contains(address) {
        result.append(address)
      }
      unsafe next = entry.pointee.ai_next
    }
    return result
  }
}

private func lookUpAnswered(
  code: Int32, list: UnsafeMutablePointer<addrinfo>?, context: UnsafeMutableRawPointer?
) {
  defer { unsafe list.map { unsafe evutil_freeaddrinfo($0) } }
  guard let context = unsafe context else { return }
  unsafe Unmanaged<LookUp>.fromOpaque(context).takeRetainedValue().answered(code, list)
}
