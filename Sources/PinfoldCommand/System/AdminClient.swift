import PinfoldModel

/// Asks the admin port of a running Pinfold: plain HTTP/1.1, one request per connection.
struct AdminClient {
  /// Seconds for one request: the port is near, and a health check must end before the next one starts.
  private static let timeout = 3
  /// Bytes of one answer; the status of a policy with a million rules is far smaller.
  private static let limit = 4 << 20

  private let target: Authority

  /// `127.0.0.1:9128`, `[::1]:9128` or `name:9128`; `nil` for anything else.
  init?(_ text: String) {
    guard let target = Authority(text) else { return nil }
    self.target = target
  }

  /// The status code and the body of `GET path`.
  func get(_ path: String) throws(NetworkFailure) -> (code: Int, body: String) { try ask("GET \(path)") }

  /// The status code and the body of `POST path` without a body of its own, with a bearer token (RFC 6750 §2.1).
  func post(_ path: String, token: String) throws(NetworkFailure) -> (code: Int, body: String) {
    try ask("POST \(path)", "Authorization: Bearer \(token)\r\nContent-Length: 0\r\n")
  }

  private func ask(_ line: String, _ fields: String = "") throws(NetworkFailure) -> (code: Int, body: String) {
    let connection = try TCPConnection(to: target, seconds: Self.timeout)
    try connection.send(Array("\(line) HTTP/1.1\r\nHost: pinfold\r\nConnection: close\r\n\(fields)\r\n".utf8))
    var answer: [UInt8] = []
    while true {
      let part = try connection.receive()
      guard !part.isEmpty else { break }
      answer += part
      guard answer.count <= Self.limit else { throw NetworkFailure(message: "the answer is too long") }
    }
    guard let parsed = Self.parse(answer) else { throw NetworkFailure(message: "the answer is not HTTP") }
    return parsed
  }

  /// Reads an answer that ended with its connection. Chunked bodies do not come: HTTP/1.1 sends none when the
  /// length is known, and the admin port knows it.
  static func parse(_ answer: [UInt8]) -> (code: Int, body: String)? {
    let text = String(decoding: answer, as: UTF8.self)
    guard text.hasPrefix("HTTP/1."), let end = text.firstRange(of: "\r\n\r\n") else { return nil }
    let words = text[..<end.lowerBound].prefix { $0 != "\r\n" }.split(separator: " ", maxSplits: 2)
    guard words.count >= 2, words[1].count == 3, let code = Int(words[1]), code >= 100 else { return nil }
    return (code, String(text[end.upperBound...]))
  }
}
