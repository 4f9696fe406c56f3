package import PinfoldModel

/// What was wrong with a handshake, for the verdict and the log.
package struct HandshakeRefusal: Equatable, Sendable {
  /// The one reason.
  package let reason: Reason
  /// Offset of the first wrong byte, counted from the first byte of the tunnel in that direction.
  package let offset: Int
  /// A constant sentence, free of anything the peer sent.
  package let detail: String

  /// A refusal with a constant sentence.
  package init(_ reason: Reason, at offset: Int, _ detail: StaticString) {
    self.reason = reason
    self.offset = offset
    self.detail = detail.description
  }

  /// The refusal a reading error stands for. `incomplete` cannot come from a whole message; should it, the message is
  /// malformed.
  init(_ error: WireError) {
    switch error {
    case .malformed(let text, let offset): self.init(.malformedHandshake, at: offset, text)
    case .refused(let reason, let text, let offset): self.init(reason, at: offset, text)
    case .incomplete: self.init(.malformedHandshake, at: 0, "a message ends too early")
    }
  }
}
