package import PinfoldModel

/// Why bytes could not be read. The text is constant, so that nothing a peer sent can reach a log through it.
package enum WireError: Error, Sendable {
  /// What is there is right so far; at least `needed` more bytes are wanted.
  case incomplete(needed: Int)
  /// The bytes cannot be read, or could be read in more than one way. `at` is the offset of the first wrong byte.
  case malformed(StaticString, at: Int)
  /// The bytes read well, but say something that is refused for a reason of its own.
  case refused(Reason, StaticString, at: Int)
}

extension WireError: Equatable {
  package static func == (left: WireError, right: WireError) -> Bool {
    switch (left, right) {
    case (.incomplete(let one), .incomplete(let other)):
      one == other
    case (.malformed(let one, let oneOffset), .malformed(let other, let otherOffset)):
      oneOffset == otherOffset && one.description == other.description
    case (.refused(let one, let text, let offset), .refused(let other, let otherText, let otherOffset)):
      one == other && offset == otherOffset && text.description == otherText.description
    default:
      false
    }
  }
}
