import PinfoldModel
import Testing

@testable import PinfoldCrypto

/// One text given as a public key, and what is wrong with it.
struct BadKeyText: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var text: String
  var fault: PublicKeyFault

  private static let good = Hex.decode("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a") ?? []
  private static func row(_ name: String, _ bytes: [UInt8], _ fault: PublicKeyFault) -> BadKeyText {
    BadKeyText(testDescription: name, text: Base64.encode(bytes), fault: fault)
  }

  static let all: [BadKeyText] = [
    BadKeyText(testDescription: "empty text", text: "", fault: .wrongLength(0)),
    BadKeyText(testDescription: "hexadecimal digits", text: Hex.encode(good), fault: .wrongLength(48)),
    BadKeyText(testDescription: "a PEM frame", text: "-----BEGIN PUBLIC KEY-----", fault: .notBase64),
    BadKeyText(testDescription: "white space behind", text: Base64.encode(good) + "\n", fault: .notBase64),
    BadKeyText(testDescription: "padding left out", text: String(Base64.encode(good).dropLast()), fault: .notBase64),
    BadKeyText(
      testDescription: "the URL-safe alphabet",
      text: Base64.encode(good).replacing("+", with: "-").replacing("/", with: "_"),
      fault: .notBase64),
    row("31 bytes", Array(good.dropLast()), .wrongLength(31)),
    row("33 bytes", good + [0], .wrongLength(33)),
    row("a 64-byte secret key", good + good, .wrongLength(64)),
    row("DER with a byte behind", Ed25519PublicKey.derPrefix + good + [0], .wrongLength(45)),
    row(
      "DER of X25519", [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00] + good, .otherAlgorithm),
    row("the point of order 1", [1] + [UInt8](repeating: 0, count: 31), .weakPoint),
    row("the point of order 4", [UInt8](repeating: 0, count: 32), .weakPoint),
    row("the point of order 2", [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f], .weakPoint),
    row("a number above the field's prime", [0xee] + [UInt8](repeating: 0xff, count: 30) + [0x7f], .weakPoint),
    row("no point of the curve", [2] + [UInt8](repeating: 0, count: 31), .weakPoint),
  ]
}

@Suite struct PublicKeyTextTests {
  private let raw = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

  @Test(arguments: BadKeyText.all) func `anything but the two forms is refused with its fault`(_ row: BadKeyText) {
    #expect(throws: CryptoError.publicKey(row.fault)) { try Ed25519PublicKey(row.text) }
  }

  @Test func `raw bytes and SPKI DER name the same key`() throws {
    let key = try Ed25519PublicKey(raw)
    let der = Base64.encode(key.der)
    #expect(der.hasPrefix("MCowBQYDK2VwAyEA"))
    #expect(try Ed25519PublicKey(der) == key)
    #expect(key.text == raw)
    #expect("\(key)" == raw)
  }

  @Test func `the keyid is the first 16 digits of SHA-256 over the raw bytes`() throws {
    // printf of the raw bytes through sha256sum.
    #expect(try Ed25519PublicKey(raw).keyID == "21fe31dfa154a261")
  }

  @Test func `every fault says what would be right`() {
    for row in BadKeyText.all {
      #expect(CryptoError.publicKey(row.fault).description.contains("base64 of its 32 raw bytes"))
    }
  }
}
