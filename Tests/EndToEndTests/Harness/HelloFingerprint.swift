/// What JA3 and JA4 hash of a ClientHello, before the hashing: two hellos with the same text have the same fingerprints.
/// A reader of its own, so that a mistake of the program's cannot hide here.
struct HelloFingerprint: Equatable, CustomStringConvertible {
  let ja3: String
  let ja4: String
  let random: [UInt8]
  let sessionID: [UInt8]
  /// What is offered to a server of TLS 1.2 or older (RFC 5077); empty too where there is none.
  let ticket: [UInt8]

  var description: String { "\(ja3) \(ja4)" }

  static func == (one: HelloFingerprint, other: HelloFingerprint) -> Bool {
    one.ja3 == other.ja3 && one.ja4 == other.ja4
  }

  /// Bytes taken from the front; what is missing is an error.
  private struct Cursor {
    var rest: ArraySlice<UInt8>

    mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
      guard rest.count >= count else { throw HarnessError("a hello ends too early") }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }

    mutating func number(_ width: Int) throws -> Int { try take(width).reduce(0) { $0 << 8 | Int($1) } }
    mutating func vector(_ width: Int) throws -> ArraySlice<UInt8> { try take(number(width)) }

    mutating func numbers(_ width: Int) throws -> [Int] {
      var list = Cursor(rest: try vector(width))
      var numbers: [Int] = []
      while !list.rest.isEmpty { numbers.append(try list.number(2)) }
      return numbers
    }
  }

  private static func isGrease(_ number: Int) -> Bool { number & 0x0f0f == 0x0a0a && number >> 8 == number & 255 }
  private static func hex(_ number: Int) -> String { String(number + 0x10000, radix: 16).dropFirst().description }

  /// Of the records at the front of the bytes.
  init(_ records: [UInt8]) throws {
    var message = Cursor(rest: TLSRecords.joined(records)[5...])
    guard try message.number(1) == 1 else { throw HarnessError("no ClientHello") }
    var hello = Cursor(rest: try message.vector(3))
    let version = try hello.number(2)
    random = Array(try hello.take(32))
    sessionID = Array(try hello.vector(1))
    let ciphers = try hello.numbers(2).filter { !Self.isGrease($0) }
    _ = try hello.vector(1)
    var list = Cursor(rest: try hello.vector(2))
    var extensions: [Int] = []
    var groups: [Int] = []
    var formats: [Int] = []
    var signatures: [Int] = []
    var versions: [Int] = []
    var firstProtocol = "00"
    var ticket: [UInt8] = []
    while !list.rest.isEmpty {
      let type = try list.number(2)
      var content = Cursor(rest: try list.vector(2))
      if !Self.isGrease(type) { extensions.append(type) }
      switch type {
      case 10: groups = try content.numbers(2).filter { !Self.isGrease($0) }
      case 11: formats = try content.vector(1).map(Int.init)
      case 13: signatures = try content.numbers(2).filter { !Self.isGrease($0) }
      case 35: ticket = Array(content.rest)
      case 43:
        var all = Cursor(rest: try content.vector(1))
        while !all.rest.isEmpty { versions.append(try all.number(2)) }
        versions.removeAll(where: Self.isGrease)
      case 16:
        var names = Cursor(rest: try content.vector(2))
        let name = String(decoding: try names.vector(1), as: UTF8.self)
        firstProtocol = "\(name.first ?? "0")\(name.last ?? "0")"
      default: break
      }
    }
    self.ticket = ticket
    let dashed = [ciphers, extensions, groups, formats].map { $0.map(String.init).joined(separator: "-") }
    ja3 = "\(version)," + dashed.joined(separator: ",")
    let sorted = extensions.filter { $0 != 0 && $0 != 16 }.sorted()
    ja4 = [
      "t\(versions.max() ?? version)\(extensions.contains(0) ? "d" : "i")\(ciphers.count)\(extensions.count)\(firstProtocol)",
      ciphers.sorted().map(Self.hex).joined(separator: ","), sorted.map(Self.hex).joined(separator: ","),
      signatures.map(Self.hex).joined(separator: ","),
    ].joined(separator: "_")
  }
}
