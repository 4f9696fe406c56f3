package import PinfoldModel

extension HandshakeRefusal {
  /// The same refusal with another offset: for whoever reads bytes out of a stream that has other offsets.
  package func moved(to offset: Int) -> HandshakeRefusal {
    HandshakeRefusal(reason: reason, offset: offset, text: detail)
  }

  /// A refusal with a text that was constant where it came from.
  package init(_ reason: Reason, at offset: Int, constant text: String) {
    self.init(reason: reason, offset: offset, text: text)
  }

  private init(reason: Reason, offset: Int, text: String) {
    self.reason = reason
    self.offset = offset
    detail = text
  }
}
