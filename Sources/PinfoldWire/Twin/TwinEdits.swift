/// The changes that make a twin out of an app's hello, applied to its message and then to its records.
struct TwinEdits {
  private let app: ClientHello
  private var message: [UInt8]
  /// The cookie's new content; the only change that may alter a length.
  private var cookie: [UInt8]?

  init(_ app: ClientHello) {
    self.app = app
    message = app.message
  }

  /// Puts bytes in the place of as many others. Another number of bytes changes nothing; the callers check.
  mutating func replace(_ range: Range<Int>, by bytes: [UInt8]) {
    guard bytes.count == range.count else { return }
    message.replaceSubrange(range, with: bytes)
  }

  /// Every key share but a GREASE one, which is kept.
  mutating func replaceShares(by shares: [UInt16: [UInt8]]) throws(TwinImpossible) {
    for share in app.keyShares where !ClientHello.isGrease(share.group) {
      guard let own = shares[share.group], own.count == share.key.count else { throw .keyShare(group: share.group) }
      replace(share.key, by: own)
    }
  }

  /// Servers that keep no state (RFC 5077 §4) begin a ticket with the name of the key that opens it, 16 bytes that an
  /// attacker knows from a connection of his own. They are kept in identities long enough to be such a ticket, so that
  /// finding the made-up one takes a try at the genuine server; the rest makes sure that no server opens it.
  private static let keyNameCount = 16
  private static let ticketMinimum = 64

  /// Identities, ages and binders of pre_shared_key.
  ///
  /// - Parameters:
  ///   - known: the app's identities of an earlier hello, each with what the twin sent in its place.
  ///   - ages: their obfuscated ages: the app's and the twin's.
  mutating func replaceKeys(
    filler: [UInt8], known: [[UInt8]: [UInt8]], ages: [[UInt8]: (app: UInt32, twin: UInt32)]
  ) throws(TwinImpossible) {
    guard filler.count >= TwinHello.fillerCount(for: app) else { throw .material }
    var rest = filler[...]
    func take(_ count: Int) -> [UInt8] {
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    for range in app.pskIdentities {
      let identity = Array(app.message[range])
      var fresh = take(range.count)
      if fresh.count >= Self.ticketMinimum {
        fresh.replaceSubrange(..<Self.keyNameCount, with: identity[..<Self.keyNameCount])
      }
      replace(range, by: known[identity] ?? fresh)
      let ageRange = range.upperBound..<(range.upperBound + 4)
      let age = Self.number(app.message[ageRange])
      var twinAge = Self.number(take(4)[...])
      // A second hello's age is the first one's and the time between. External keys have the age 0 (§4.2.11).
      if let earlier = ages[identity] { twinAge = earlier.twin &+ (age &- earlier.app) }
      if age == 0 { twinAge = 0 }
      replace(ageRange, by: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: twinAge >> UInt32($0)) })
    }
    for range in app.pskBinders { replace(range, by: take(range.count)) }
  }

  /// What an app's first hello and its twin sent as pre-shared keys, the one beside the other.
  static func keysSent(
    _ app: ClientHello, _ twin: ClientHello
  ) -> (identities: [[UInt8]: [UInt8]], ages: [[UInt8]: (app: UInt32, twin: UInt32)]) {
    var identities: [[UInt8]: [UInt8]] = [:]
    var ages: [[UInt8]: (app: UInt32, twin: UInt32)] = [:]
    for (one, other) in zip(app.pskIdentities, twin.pskIdentities) {
      let identity = Array(app.message[one])
      identities[identity] = Array(twin.message[other])
      ages[identity] = (
        number(app.message[one.upperBound..<(one.upperBound + 4)]),
        number(twin.message[other.upperBound..<(other.upperBound + 4)])
      )
    }
    return (identities, ages)
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

  /// The cookie of the twin's own HelloRetryRequest.
  mutating func replaceCookie(by bytes: ArraySlice<UInt8>) throws(TwinImpossible) {
    guard app.extensions.has(ExtensionType.cookie), bytes.count <= 0xffff - 2 else { throw .differentRetry }
    cookie = [UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)] + bytes
  }

  /// The app's records with the new message in them, cut where the app cut. A cookie of another length than the app's
  /// makes the last record longer or shorter.
  func records() throws(TwinImpossible) -> [UInt8] {
    let message = try whole()
    var result: [UInt8] = []
    result.reserveCapacity(app.records.count + message.count - app.message.count)
    var rest = message[...]
    var position = 0
    while position + 5 <= app.records.count {
      var length = Int(app.records[position + 3]) << 8 | Int(app.records[position + 4])
      let next = position + 5 + length
      let isLast = next == app.records.count
      if isLast { length = rest.count }
      guard app.records[position] == ContentType.handshake, next <= app.records.count, length <= rest.count,
        (1...WireLimits.plaintextRecord).contains(length)
      else { throw .material }
      result += app.records[position..<(position + 3)]
      result += [UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)]
      result += rest.prefix(length)
      rest = rest.dropFirst(length)
      position = next
    }
    guard rest.isEmpty, position == app.records.count else { throw .material }
    return result
  }

  /// The message with the cookie put in, and the lengths around it made right: of the extension, of all extensions, and
  /// of the message.
  private func whole() throws(TwinImpossible) -> [UInt8] {
    guard let cookie, let content = app.extensions.content(ExtensionType.cookie) else { return message }
    let growth = cookie.count - content.count
    guard growth != 0 else {
      var result = message
      result.replaceSubrange(content, with: cookie)
      return result
    }
    guard let first = app.extensions.first else { throw .material }
    let lengthOfAll = (first.content.lowerBound - 6)..<(first.content.lowerBound - 4)
    let length = (content.lowerBound - 2)..<content.lowerBound
    let total = app.extensions.reduce(0) { $0 + 4 + $1.content.count } + growth
    let messageLength = message.count - 4 + growth
    guard total <= 0xffff, messageLength <= WireLimits.helloMessage else { throw .material }
    var result = message
    // From the back to the front, so that offsets stay true.
    result.replaceSubrange(content, with: cookie)
    result.replaceSubrange(length, with: Self.u16(cookie.count))
    result.replaceSubrange(lengthOfAll, with: Self.u16(total))
    result.replaceSubrange(1..<4, with: [UInt8(truncatingIfNeeded: messageLength >> 16)] + Self.u16(messageLength))
    return result
  }

  private static func u16(_ value: Int) -> [UInt8] {
    [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
  }
}
