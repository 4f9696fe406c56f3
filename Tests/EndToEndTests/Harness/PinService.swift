import Foundation
import Synchronization

/// A pin service on loopback that answers as a test tells it, and remembers who was asked for.
final class PinService: Sendable {
  /// What a request gets.
  enum Answer: Sendable {
    /// 200 and this body.
    case body(String)
    case status(Int, fields: String = "", body: String = "")
    /// 200 with a length that the body does not reach.
    case truncated(String)
    /// 200, a byte each 50 ms, without end.
    case drip
    /// Nothing at all, for as long as somebody waits.
    case silence
  }

  private struct State {
    var answer: @Sendable (String) -> Answer
    var delay = 0.0
    var asked: [String] = []
    var targets: [String] = []
    var times: [ContinuousClock.Instant] = []
  }

  private let listener: Listener
  private let state: Shared
  var port: UInt16 { listener.port }

  private final class Shared: Sendable {
    let state: Mutex<State>
    init(_ state: State) { self.state = Mutex(state) }
  }

  init(_ answer: @escaping @Sendable (_ host: String) -> Answer) throws {
    let shared = Shared(State(answer: answer))
    state = shared
    listener = try Listener { socket in
      var bytes: [UInt8] = []
      while ProxyReply(bytes).head.isEmpty {
        guard case .bytes(let more) = socket.receive() else { return socket.shutDown() }
        bytes += more
      }
      let target = String(ProxyReply(bytes).statusLine.split(separator: " ").dropFirst().first ?? "")
      let host = String(target.split(separator: "=").last ?? "")
      let (answer, delay) = shared.state.withLock { state in
        state.asked.append(host)
        state.targets.append(target)
        state.times.append(.now)
        return (state.answer, state.delay)
      }
      Thread.sleep(forTimeInterval: delay)
      Self.send(answer(host), to: socket)
      socket.shutDown()
    }
  }

  private static func send(_ answer: Answer, to socket: Socket) {
    func head(_ status: Int, _ length: Int, _ fields: String = "") -> [UInt8] {
      Array(
        "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\nContent-Length: \(length)\r\n\(fields)\r\n".utf8)
    }
    switch answer {
    case .body(let text): socket.send(head(200, text.utf8.count) + Array(text.utf8))
    case .status(let status, let fields, let body):
      socket.send(head(status, body.utf8.count, fields) + Array(body.utf8))
    case .truncated(let text): socket.send(head(200, text.utf8.count + 1) + Array(text.utf8))
    case .drip:
      socket.send(head(200, 60_000))
      while socket.send([0x20]) { Thread.sleep(forTimeInterval: 0.05) }
    case .silence:
      socket.setTimeout(seconds: 30)
      while case .bytes = socket.receive() {}
    }
  }

  /// Hosts that were asked for, in order.
  var asked: [String] { state.state.withLock { $0.asked } }
  /// The request targets.
  var targets: [String] { state.state.withLock { $0.targets } }
  /// When each of them came.
  var times: [ContinuousClock.Instant] { state.state.withLock { $0.times } }

  /// Answers otherwise from now on.
  func answer(_ answer: @escaping @Sendable (_ host: String) -> Answer) { state.state.withLock { $0.answer = answer } }
  /// Seconds before each answer.
  func delay(_ seconds: Double) { state.state.withLock { $0.delay = seconds } }

  /// Nobody listens any more.
  func stop() { listener.stop() }

  /// The element of `pin_services`, for records signed by these keys. Further members may be given.
  func section(_ keys: RecordSigner..., domains: String = "*.pinfold.test", more: String = "") -> String {
    Self.section([self], keys, domains: domains, more: more)
  }

  /// The same for several services that stand for one another.
  static func section(
    _ services: [PinService], _ keys: [RecordSigner], domains: String = "*.pinfold.test", more: String = ""
  ) -> String {
    let urls = services.map { "\"http://127.0.0.1:\($0.port)/v1/pins\"" }.joined(separator: ", ")
    let trusted = keys.map { "\"\($0.publicKey)\"" }.joined(separator: ", ")
    let listed = domains.split(separator: " ").map { "\"\($0)\"" }.joined(separator: ", ")
    return "{ urls: [\(urls)], domains: [\(listed)], trusted_keys: [\(trusted)], min_ttl_seconds: 1, \(more) }"
  }
}
