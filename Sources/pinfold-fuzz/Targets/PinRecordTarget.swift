import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTLS

/// Promises: what is believed is what was signed; it is for the host that was asked for, in its time, and has pins; it is
/// read again the same. An input is tried as it came, and as the payload of a JWS that a trusted key signed.
enum PinRecordTarget {
  static let host = "lab.test"
  /// Within the lifetime of every record that the seeds have.
  static let now = Timestamp(seconds: 1_795_224_780)
  /// The pins of everything that was ever signed.
  static let pins = [
    "6bde0288233e9cfdea6f073729d650accac9201b338abc1cb35ee660635e1a69",
    "5fa666823bad9b0f2133e12def8a42142c70b8040669e8391e68d0aba404308a",
  ]
  /// A P-256 key whose secret nobody has any more, of a server that signed `captured`.
  private static let es256 =
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAES57KaeWBydDUHiltJK9GvbkZp+WilqgLW5cZojxYO+D4mjX3UzIsN7CNXRq15ZOnlIbqgk2axn+RUu4/8cgohQ=="

  private static let keys: PinServiceKeys? = {
    guard let key = EnvelopeTarget.key, case .es256(let p256) = try? PinServiceKeys.Key(es256) else { return nil }
    return PinServiceKeys(ed25519: [key.publicKey], es256: [p256])
  }()

  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    guard let keys, let host = HostName(host) else { throw BrokenPromise("no key to verify with") }
    var service = PinServiceSection()
    for allowUnbound in [false, true] {
      service.allowUnboundSignatures = allowUnbound
      let terms = PinRecordTerms(host: host, now: now, service: service)
      if let record = try read(bytes, keys, terms) {
        let known = pins.compactMap { Pin("sha256/\($0)") }
        try BrokenPromise.unless(record.pins.allSatisfy(known.contains), "pins that nobody signed")
        try BrokenPromise.unless(
          record.format != .fingerprint || allowUnbound, "an unbound signature where none is allowed")
        try BrokenPromise.unless(
          record.format == .fingerprint || record.domain.text == host.text, "a domain that nobody signed")
      }
      _ = try read(jws(payload: bytes), keys, terms)
    }
  }

  /// Whether the bytes are a record at all, unbound ones included.
  static func isBelieved(_ bytes: [UInt8]) -> Bool {
    guard let keys, let host = HostName(host) else { return false }
    var service = PinServiceSection()
    service.allowUnboundSignatures = true
    let terms = PinRecordTerms(host: host, now: now, service: service)
    return (try? PinRecord(parsing: bytes, keys: keys, terms: terms)) != nil
  }

  /// Whatever is taken can be used, and is taken again.
  private static func read(
    _ bytes: [UInt8], _ keys: PinServiceKeys, _ terms: PinRecordTerms
  ) throws(BrokenPromise) -> PinRecord? {
    let record: PinRecord
    do throws(PinRecordError) { record = try PinRecord(parsing: bytes, keys: keys, terms: terms) } catch {
      try BrokenPromise.unless(!error.step.isEmpty && !error.description.isEmpty, "refused without a reason")
      try BrokenPromise.unless(
        error.description.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }, "a reason that could steer a terminal")
      return nil
    }
    let isFor = record.domain.matches(Authority(host: terms.host, port: 443))
    try BrokenPromise.unless(isFor, "for another host")
    try BrokenPromise.unless((1...PinSet.limit).contains(record.pins.count), "no pins, or too many")
    try BrokenPromise.unless(terms.now < record.freshUntil && record.freshUntil <= record.expires, "out of its time")
    try BrokenPromise.unless(
      record.freshUntil.seconds - terms.received.seconds <= terms.maxTTLSeconds, "fresh for longer than allowed")
    let again = try? PinRecord(parsing: bytes + [0x0a], keys: keys, terms: terms)
    try BrokenPromise.unless(again == record, "read in two ways")
    return record
  }

  private static func urlSafe(_ bytes: [UInt8]) -> String {
    Base64.encode(bytes).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private static func jws(payload: [UInt8]) -> [UInt8] {
    let signed = urlSafe(Array("{\"alg\":\"EdDSA\"}".utf8)) + "." + urlSafe(payload)
    let signature = EnvelopeTarget.key?.sign(Array(signed.utf8)) ?? []
    return Array("{\"jws\":\"\(signed).\(urlSafe(signature))\"}".utf8)
  }

  // MARK: Seeds

  /// What was signed, in each of the formats.
  static var records: [String: [UInt8]] {
    guard let key = EnvelopeTarget.key else { return [:] }
    func sign(_ text: String) -> String { Base64.encode(key.sign(Array(text.utf8))) }
    let list = pins.map { "\"\($0)\"" }.joined(separator: ",")
    let members =
      "{\"domain\":\"\(host)\",\"pins\":[\(list)],\"created\":\"2026-11-21T01:29:56Z\","
      + "\"expires\":\"2026-11-21T02:59:56Z\",\"ttl_seconds\":5400,\"keyId\":\"x\",\"alg\":\"Ed25519\""
    let claims =
      "{\"domain\":\"\(host)\",\"exp\":1795230120,\"iat\":1795224720,\"pins\":[\(list)],\"ttl_seconds\":5400}"
    let texts = [
      "ed25519": members + ",\"signature\":\"\(sign(members + "}"))\"}",
      "fingerprint":
        "{\"domain\":\"\(host)\",\"fingerprint\":\"\(pins[0])\",\"signature\":\"\(sign(pins[0]))\",\"ttl\":600}",
      "claims": claims, "es256": captured,
    ]
    return texts.mapValues { Array($0.utf8) }.merging(["eddsa": jws(payload: Array(claims.utf8))]) { $1 }
  }

  /// What a released server sent.
  private static let captured =
    #"{"jws":"eyJhbGciOiJFUzI1NiIsImtpZCI6ImE4NTNjMTE3IiwidHlwIjoiSldUIn0.eyJkb21haW4iOiJsYWIudGVzdCIsImV4cCI6MTc5NTIzMDEyMCwiaWF0IjoxNzk1MjI0NzIwLCJwaW5zIjpbImE5NENpQ00rblAzcWJ3YzNLZFpRck1ySklCc3ppcndjczE3bVlHTmVHbWs9Il0sInR0bF9zZWNvbmRzIjo1NDAwfQ.TZz0w1IUdI4yGpVOCdg6YFiZhgpToYvaX-lLdanJsAkpCo_4o4JU41kjfEMrq63hFAYZZ1Vi6bBtTZm8No2JVw"}"#
}
