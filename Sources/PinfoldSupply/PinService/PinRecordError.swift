package import PinfoldModel

/// Why a pin service's record is not believed. It is refused whole.
package enum PinRecordError: Error, Hashable, Sendable, CustomStringConvertible {
  /// More than `PinRecord.byteLimit` bytes.
  case tooLarge(Int)
  /// None of the three shapes: what is wrong, and at which byte of the text it stands in.
  case malformed(String, offset: Int)
  /// A member that is there twice: two readers could take different ones.
  case duplicateMember(String)
  /// Signed with something that no trusted key signs with, or with headers that ask for trust in other keys.
  case algorithm(String)
  /// No trusted key made the signature.
  case signature
  /// A `fingerprint` record, which its service is not allowed to send.
  case unboundNotAllowed
  /// Made later than the clock plus the skew allows.
  case notYetValid(Timestamp)
  /// Its time is over.
  case expired(Timestamp)
  /// For another host.
  case otherHost(domain: String, asked: String)
  /// A domain that is no host pattern of ours, and why.
  case badDomain(String)
  /// No pins, too many, or one that is none.
  case pins(String)

  /// The step that failed, a word for logs and tests.
  package var step: String {
    switch self {
    case .tooLarge, .malformed: "shape"
    case .duplicateMember: "duplicate_member"
    case .algorithm: "algorithm"
    case .signature: "signature"
    case .unboundNotAllowed: "unbound"
    case .notYetValid: "not_yet_valid"
    case .expired: "expired"
    case .otherHost, .badDomain: "domain"
    case .pins: "pins"
    }
  }

  /// One line for people.
  package var description: String {
    switch self {
    case .tooLarge(let count): "a record of \(count) bytes; the limit is \(PinRecord.byteLimit)"
    case .malformed(let problem, let offset): "not a pin record: \(problem) (byte \(offset))"
    case .duplicateMember(let name): "the member \(name) is there twice"
    case .algorithm(let problem): problem
    case .signature: "no trusted key made the signature"
    case .unboundNotAllowed:
      "its signature covers neither host nor lifetime, and the service is not set to allow_unbound_signatures"
    case .notYetValid(let time): "made at \(time.text), which is still to come; check the clock"
    case .expired(let time): "expired at \(time.text)"
    case .otherHost(let domain, let asked): "for \(domain), asked was \(asked)"
    case .badDomain(let problem): "its domain is no host pattern: \(problem)"
    case .pins(let problem): problem
    }
  }

  /// Text of a record as it may stand in a log line: short, in quotation marks, nothing but printable ASCII.
  static func quoted(_ text: String) -> String {
    let bytes = text.utf8.prefix(64).map { $0 >= 0x20 && $0 < 0x7f && $0 != 0x22 ? $0 : 0x3f }
    return "\"\(String(decoding: bytes, as: UTF8.self))\(text.utf8.count > 64 ? "…" : "")\""
  }
}
