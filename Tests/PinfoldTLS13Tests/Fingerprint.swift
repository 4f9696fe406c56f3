import PinfoldModel
import PinfoldWire

@testable import PinfoldTLS

/// JA3 and JA4 of a hello, worked out from its message bytes by a reader of their own: what a server or an observer
/// would call this client.
struct Fingerprint: Equatable, Sendable {
  /// JA3 before its MD5: version, suites, extensions, groups, point formats.
  let ja3: String
  /// JA4 of a TLS client over TCP.
  let ja4: String

  private struct Cursor {
    var rest: ArraySlice<UInt8>
    mutating func take(_ count: Int) -> [UInt8] {
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    mutating func number(_ count: Int) -> Int { take(count).reduce(0) { $0 << 8 | Int($1) } }
    mutating func vector(_ width: Int) -> Cursor { Cursor(rest: take(number(width))[...]) }
    mutating func numbers() -> [Int] {
      var list: [Int] = []
      while !rest.isEmpty { list.append(number(2)) }
      return list
    }
  }

  private static func isGrease(_ value: Int) -> Bool { value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff }

  /// `message` is a whole ClientHello, header included.
  init(_ message: [UInt8]) throws {
    var hello = Cursor(rest: message.dropFirst(4))
    let legacy = hello.number(2)
    _ = hello.take(32)
    _ = hello.vector(1)
    var suiteBytes = hello.vector(2)
    let suites = suiteBytes.numbers().filter { !Self.isGrease($0) }
    _ = hello.vector(1)
    var all = hello.vector(2)
    var extensions: [Int] = []
    var contents: [Int: Cursor] = [:]
    while !all.rest.isEmpty {
      let type = all.number(2)
      let content = all.vector(2)
      guard !Self.isGrease(type) else { continue }
      extensions.append(type)
      contents[type] = content
    }
    var groupBytes = contents[10]
    var groupList = groupBytes?.vector(2)
    let groups = (groupList?.numbers() ?? []).filter { !Self.isGrease($0) }
    var formatBytes = contents[11]
    let formats = formatBytes?.vector(1).rest.map { Int($0) } ?? []
    ja3 = [[legacy], suites, extensions, groups, formats].map { list in
      list.map { String($0) }.joined(separator: "-")
    }.joined(separator: ",")

    var versionBytes = contents[43]
    var versionList = versionBytes?.vector(1)
    let version = (versionList?.numbers() ?? [legacy]).filter { !Self.isGrease($0) }.max() ?? legacy
    var protocolBytes = contents[16]
    var protocols = protocolBytes?.vector(2)
    let first = protocols?.vector(1).rest ?? []
    let alpn = first.isEmpty ? "00" : String(decoding: [first.first ?? 0, first.last ?? 0], as: UTF8.self)
    var schemeBytes = contents[13]
    var schemeList = schemeBytes?.vector(2)
    let schemes = (schemeList?.numbers() ?? []).map { Self.hex($0) }.joined(separator: ",")
    let sortedSuites = suites.map { Self.hex($0) }.sorted().joined(separator: ",")
    let sorted = extensions.filter { $0 != 0 && $0 != 16 }.map { Self.hex($0) }.sorted().joined(separator: ",")
    let number = [0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10"][version] ?? "00"
    let head =
      "t" + number + (contents[0] == nil ? "i" : "d") + Self.count(suites.count) + Self.count(extensions.count) + alpn
    ja4 = try [head, Self.short(sortedSuites), Self.short(schemes.isEmpty ? sorted : sorted + "_" + schemes)]
      .joined(separator: "_")
  }

  private static func hex(_ value: Int) -> String {
    Hex.encode([UInt8(value >> 8), UInt8(value & 0xff)])
  }
  private static func count(_ value: Int) -> String { (value < 10 ? "0" : "") + String(min(value, 99)) }
  private static func short(_ text: String) throws -> String {
    text.isEmpty ? "000000000000" : String(Hex.encode(try Digest.sha256.hash(Array(text.utf8))).prefix(12))
  }
}
