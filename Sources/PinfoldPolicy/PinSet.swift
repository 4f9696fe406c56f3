package import PinfoldModel

/// What a pin is there for. Matching does not look at it; people do.
package enum PinRole: UInt8, CaseIterable, Sendable {
  case listed = 0
  case primary = 1
  case backup = 2
  case emergency = 3

  /// The member name in a policy document; `nil` for a pin of a plain list.
  package var name: String? {
    switch self {
    case .listed: nil
    case .primary: "primary"
    case .backup: "backup"
    case .emergency: "emergency"
    }
  }
}

/// The pins of one rule: a small value that points into the storage of all rules.
package struct PinSet: Sendable {
  /// Pins of many rules end to end, so that a rule costs no allocation of its own.
  final class Storage: Sendable {
    let digests: [Digest256]
    /// Bit 0: a certificate pin. The bits above: the role.
    let tags: [UInt8]

    init(digests: [Digest256], tags: [UInt8]) {
      self.digests = digests
      self.tags = tags
    }

    static let empty = Storage(digests: [], tags: [])
  }

  /// The most pins a rule may have. A set is searched whole each time, so it has to stay small.
  package static let limit = 64

  private let storage: Storage
  private let range: Range<Int>

  init(storage: Storage, range: Range<Int>) {
    self.storage = storage
    self.range = range
  }

  /// No pin: matches nothing.
  package static let empty = PinSet(storage: .empty, range: 0..<0)

  /// A set of its own, for pins that come from elsewhere than a policy document.
  package init(_ pins: [Pin]) {
    storage = Storage(digests: pins.map(Self.digest(of:)), tags: pins.map { Self.tag(of: $0, role: .listed) })
    range = 0..<pins.count
  }

  /// This set and one pin more.
  package func adding(_ pin: Pin) -> PinSet {
    let digests = range.map { storage.digests[$0] } + [Self.digest(of: pin)]
    let tags = range.map { storage.tags[$0] } + [Self.tag(of: pin, role: .listed)]
    return PinSet(storage: Storage(digests: digests, tags: tags), range: 0..<digests.count)
  }

  static func digest(of pin: Pin) -> Digest256 {
    switch pin {
    case .publicKey(let digest), .certificate(let digest): digest
    }
  }

  static func tag(of pin: Pin, role: PinRole) -> UInt8 {
    let isCertificate: UInt8 = if case .certificate = pin { 1 } else { 0 }
    return role.rawValue << 1 | isCertificate
  }

  /// Number of pins.
  package var count: Int { range.count }
  /// Whether there is nothing that could match.
  package var isEmpty: Bool { range.isEmpty }

  /// The pins with their roles, in the order they were written.
  package var entries: [(pin: Pin, role: PinRole)] {
    range.map { index in
      let tag = storage.tags[index]
      let digest = storage.digests[index]
      return (tag & 1 == 1 ? .certificate(digest) : .publicKey(digest), PinRole(rawValue: tag >> 1) ?? .listed)
    }
  }

  /// Whether one of the pins is this key or this certificate. Time depends on the number of pins alone, not on which
  /// of them matches. `certificate` is `nil` for a raw public key (RFC 7250), which no certificate pin can match.
  package func contains(publicKey: Digest256, certificate: Digest256?) -> Bool {
    var found: UInt8 = 0
    for index in range {
      let isCertificate = storage.tags[index] & 1
      let digest = storage.digests[index]
      let keyEqual: UInt8 = digest == publicKey ? 1 : 0
      // Compared with itself when there is no certificate, and masked away, to keep the work the same.
      let certificateEqual: UInt8 = digest == (certificate ?? publicKey) ? 1 : 0
      let hasCertificate: UInt8 = certificate == nil ? 0 : 1
      found |= (keyEqual & (1 ^ isCertificate)) | (certificateEqual & isCertificate & hasCertificate)
    }
    return found == 1
  }
}
