/// A request to one of our servers. Its body is of no interest.
package struct HTTPRequest: Sendable {
  /// What is asked for, as far as anybody here tells methods apart.
  package enum Method: Sendable {
    case get, head, post, other
  }

  /// The method.
  package let method: Method
  /// The path as sent, still percent-encoded; starts with `/`.
  package let path: String
  /// What follows `?`, still encoded; `nil` without one.
  package let query: String?
  /// The Accept field, `nil` without one.
  package let accept: String?
  /// The Authorization field, `nil` without one. A secret: for comparing, never for a log.
  package let authorization: String?

  /// Whether something is to be done; otherwise the request only reads.
  package var isPost: Bool { method == .post }

  /// A request with these parts.
  package init(
    method: Method = .get, path: String, query: String? = nil, accept: String? = nil,
    authorization: String? = nil
  ) {
    self.method = method
    self.path = path
    self.query = query
    self.accept = accept
    self.authorization = authorization
  }
}

/// What one of our servers answers.
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
