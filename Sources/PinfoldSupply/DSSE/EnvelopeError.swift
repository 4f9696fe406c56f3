/// Why a DSSE envelope is not believed.
package enum EnvelopeError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No envelope at all: what is wrong, and at which byte from 0.
  case malformed(String, offset: Int)
  /// An envelope of something else.
  case payloadType(found: String, expected: String)
  /// Too few of the trusted keys have signed.
  case signatures(SignatureCount)

  /// One line that says what failed and what would be right.
  package var description: String {
    switch self {
    case .malformed(let problem, let offset): "not a DSSE envelope: \(problem) (byte \(offset))"
    case .payloadType(let found, let expected): "signed as \(PinRecordError.quoted(found)), not as \"\(expected)\""
    case .signatures(let count): count.description
    }
  }
}

/// How the signatures of an envelope were counted.
package struct SignatureCount: Equatable, Sendable, CustomStringConvertible {
  /// Trusted keys that have to sign.
  package var required: Int
  /// Ids of the trusted keys whose signature holds, each once, in the order of the trusted keys.
  package var good: [String] = []
  /// Ids of trusted keys whose signatures all fail.
  package var bad: [String] = []
  /// Signatures that name no trusted key. They count for nothing, and against nothing.
  package var unknown = 0

  /// One line for people.
  package var description: String {
    var text = "\(good.count) of \(required) required signatures hold"
    if !bad.isEmpty { text += "; the signature of \(bad.joined(separator: ", ")) does not verify" }
    if unknown > 0 { text += "; \(unknown) by keys that are not trusted" }
    return text
  }
}
