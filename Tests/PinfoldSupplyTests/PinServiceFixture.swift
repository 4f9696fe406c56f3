import Foundation
import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldSupply
import PinfoldTLS
import Testing

/// The files of Tests/Fixtures/PinServices.
enum PinServiceFixture {
  /// An answer that a released server really sent.
  struct Captured: Decodable, CustomTestStringConvertible {
    let response: String
    let host: String
    let format: String
    let key: String
    let keyID: String
    let made: String
    let ends: String
    let pins: [String]

    var testDescription: String { "\(format) of \(host), made \(made)" }
    var bytes: [UInt8] { Array(response.utf8) }
    /// A moment within its lifetime.
    var during: Timestamp { Timestamp(seconds: (Timestamp(made)?.seconds ?? 0) + 60) }
    var keys: PinServiceKeys { get throws { try PinServiceFixture.keys([key]) } }

    func terms(now: Timestamp? = nil, host: String? = nil) throws -> PinRecordTerms {
      try PinServiceFixture.terms(host ?? self.host, now: now ?? during)
    }
  }

  struct JWS: Decodable {
    struct Times: Decodable, CustomTestStringConvertible {
      let iat: Int64
      let exp: Int64
      let expect: String
      var testDescription: String { "made \(iat) s and ending \(exp) s from now: \(expect)" }
    }
    let clock: Int64
    let times: [Times]
    let malformed: [String]
  }

  struct Keys: Decodable {
    let good: [String]
    let raw: String
    let bad: [String]
  }

  static let captured: [Captured] = read("captured", or: [])
  static let jws: JWS = read("jws", or: JWS(clock: 0, times: [], malformed: []))
  static let keyTexts: Keys = read("keys", or: Keys(good: [], raw: "", bad: []))

  /// The default stands in for a file that is missing; tests over an empty list say so.
  private static func read<Value: Decodable>(_ name: String, or missing: Value) -> Value {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/PinServices/\(name).json")
    return (try? JSONDecoder().decode(Value.self, from: Data(contentsOf: file))) ?? missing
  }

  static func keys(_ texts: [String]) throws -> PinServiceKeys {
    var section = PinServiceSection()
    section.trustedKeys = texts.enumerated().map { index, text in
      Located(
        text, place: SourcePlace(line: 7 + index, column: 3), path: "pin_services[0].trusted_keys[\(index)]")
    }
    return try PinServiceKeys(section, file: "pinfold.json5")
  }

  static func terms(
    _ host: String, now: Timestamp, received: Timestamp? = nil, min: Int = 60, max: Int = 86_400, unbound: Bool = false
  ) throws -> PinRecordTerms {
    var section = PinServiceSection()
    section.minTTLSeconds = min
    section.maxTTLSeconds = max
    section.allowUnboundSignatures = unbound
    return PinRecordTerms(
      host: try #require(HostName(host)), now: now, received: received, service: section)
  }
}

/// Makes records as a service would, with any member its own.
struct RecordMaker {
  let key: Ed25519SecretKey
  var now = Timestamp(seconds: 1_795_219_200)
  var domain = "\"api.example.com\""
  var pins = "[\"\(String(repeating: "ab", count: 32))\"]"
  var created: Int64 = 0
  var expires: Int64 = 3600
  var ttl = "3600"
  var keyID = "\"x\""
  var algorithm = "\"Ed25519\""

  init() throws { key = try Ed25519SecretKey() }

  var keys: PinServiceKeys { PinServiceKeys(ed25519: [key.publicKey]) }

  func sign(_ text: String) -> String { Base64.encode(key.sign(Array(text.utf8))) }

  private func time(_ offset: Int64) -> String { Timestamp(seconds: now.seconds + offset).text }

  /// The members of an `ed25519` record before the signature, in order.
  var members: [(name: String, value: String)] {
    [
      ("domain", domain), ("pins", pins), ("created", "\"\(time(created))\""), ("expires", "\"\(time(expires))\""),
      ("ttl_seconds", ttl), ("keyId", keyID), ("alg", algorithm),
    ]
  }

  static func object(_ members: [(name: String, value: String)]) -> String {
    "{" + members.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ",") + "}"
  }

  /// A whole `ed25519` record.
  var ed25519: [UInt8] {
    let signature = sign(Self.object(members))
    return Array(Self.object(members + [("signature", "\"\(signature)\"")]).utf8)
  }

  static func urlSafe(_ bytes: [UInt8]) -> String {
    Base64.encode(bytes).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  var payload: String {
    "{\"domain\":\(domain),\"exp\":\(now.seconds + expires),\"iat\":\(now.seconds + created),\"pins\":\(pins),"
      + "\"ttl_seconds\":\(ttl)}"
  }

  /// The compact JWS of a header and a payload, signed with EdDSA whatever the header says.
  func compact(header: String = "{\"alg\":\"EdDSA\",\"kid\":\"7fda4c1e\"}", payload: String? = nil) -> String {
    let signed = Self.urlSafe(Array(header.utf8)) + "." + Self.urlSafe(Array((payload ?? self.payload).utf8))
    return signed + "." + Self.urlSafe(key.sign(Array(signed.utf8)))
  }

  static func jws(_ compact: String) -> [UInt8] { Array("{\"jws\":\"\(compact)\"}".utf8) }

  func read(
    _ bytes: [UInt8], host: String = "api.example.com", at offset: Int64 = 0, unbound: Bool = false
  ) throws -> PinRecord {
    try PinRecord(
      parsing: bytes, keys: keys,
      terms: PinServiceFixture.terms(host, now: Timestamp(seconds: now.seconds + offset), unbound: unbound))
  }

  /// The step at which the record is refused; `nil` when it is taken.
  func step(
    _ bytes: [UInt8], host: String = "api.example.com", at offset: Int64 = 0, unbound: Bool = false
  ) throws -> String? {
    do { _ = try read(bytes, host: host, at: offset, unbound: unbound) } catch let error as PinRecordError {
      #expect(!error.description.isEmpty && !error.description.contains("\n"))
      return error.step
    }
    return nil
  }
}
