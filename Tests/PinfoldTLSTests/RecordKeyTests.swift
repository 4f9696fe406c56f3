import Foundation
import PinfoldModel
import Testing

@testable import PinfoldTLS

/// The keys of pin records, held against the openssl command.
@Suite struct RecordKeyTests {
  private let folder: String

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
  }

  /// A PEM key made by openssl, by its arguments behind `genpkey`; `transform` is another command over it.
  private func pem(_ arguments: [String], then transform: [String] = []) throws -> [UInt8] {
    let made = try runOpenSSL(["genpkey"] + arguments)
    guard !transform.isEmpty else { return made }
    let path = "\(folder)/\(UUID().uuidString)"
    try Data(made).write(to: URL(filePath: path))
    return try runOpenSSL(transform + ["-in", path])
  }

  private func key(_ pem: [UInt8]) throws -> PEMSigningKey { try PEMSigningKey(pem: pem.span) }

  private static let p256 = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
  private static let ed25519 = ["-algorithm", "ed25519"]

  /// What openssl says of a signature over `message` by a public key in DER.
  private func opensslVerifies(_ signature: [UInt8], of message: [UInt8], by key: [UInt8], isDER: Bool) throws -> Bool {
    for (name, bytes) in [("key", key), ("message", message), ("signature", signature)] {
      try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)"))
    }
    let arguments =
      isDER
      ? ["dgst", "-sha256", "-keyform", "DER", "-verify", "\(folder)/key", "-signature", "\(folder)/signature"]
      : [
        "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", "\(folder)/key", "-sigfile",
        "\(folder)/signature", "-in",
      ]
    return (try? runOpenSSL(arguments + ["\(folder)/message"])) != nil
  }

  private func der(_ signature: [UInt8]) -> [UInt8] {
    func number(_ digits: ArraySlice<UInt8>) -> [UInt8] {
      var digits = Array(digits.drop { $0 == 0 })
      if digits.isEmpty || digits[0] >= 0x80 { digits.insert(0, at: 0) }
      return [2, UInt8(digits.count)] + digits
    }
    let body = number(signature[..<32]) + number(signature[32...])
    return [0x30, UInt8(body.count)] + body
  }

  @Test func `P-256 signatures are 64 bytes that openssl and our own verifier take`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let key = try self.key(pem(Self.p256))
    #expect(key.algorithm == .es256)
    let verifier = try ES256PublicKey(subjectPublicKeyInfo: key.publicKey)
    for round in 0..<30 {
      let message = [UInt8](repeating: UInt8(round), count: round * 7)
      let signature = try key.sign(message)
      #expect(signature.count == 64)
      #expect(verifier.verifies(signature, of: message))
      #expect(!verifier.verifies(signature, of: message + [0]))
      if round < 5 {
        let isGood = try opensslVerifies(der(signature), of: message, by: key.publicKey, isDER: true)
        #expect(isGood)
      }
    }
  }

  @Test func `Ed25519 signatures are those of openssl`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let key = try self.key(pem(Self.ed25519))
    #expect(key.algorithm == .ed25519 && key.publicKey.count == 44)
    for message in [[], [1], [UInt8](repeating: 9, count: 1000)] where !message.isEmpty {
      let signature = try key.sign(message)
      let isGood = try opensslVerifies(signature, of: message, by: key.publicKey, isDER: false)
      #expect(isGood && signature.count == 64)
    }
  }

  @Test func `no changed signature, nor one in another form, is taken`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let key = try self.key(pem(Self.p256))
    let verifier = try ES256PublicKey(subjectPublicKeyInfo: key.publicKey)
    let good = try key.sign([1, 2, 3])
    for bit in 0..<512 {
      var changed = good
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!verifier.verifies(changed, of: [1, 2, 3]), "bit \(bit)")
    }
    let zero = [UInt8](repeating: 0, count: 32)
    let all = [UInt8](repeating: 0xff, count: 32)
    let halves = (Array(good[..<32]), Array(good[32...]))
    let odd = [
      der(good), good + [0], Array(good.dropLast()), [], zero + zero, halves.0 + zero, zero + halves.1, all + all,
      halves.1 + halves.0, halves.0 + all,
    ]
    for signature in odd { #expect(!verifier.verifies(signature, of: [1, 2, 3]), "\(signature)") }
  }

  @Test func `keys are read in each unencrypted form`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let forms = [
      try pem(Self.p256), try pem(Self.p256, then: ["ec"]), try pem(Self.ed25519),
      try pem(Self.p256, then: ["pkey", "-traditional"]),
    ]
    for form in forms {
      let key = try self.key(form)
      #expect(try key.sign([7]).count == 64)
    }
    let parameters = try runOpenSSL(["ecparam", "-name", "prime256v1"])
    let behind = try key(parameters + forms[1])
    #expect(behind.algorithm == .es256)
  }

  @Test func `any other key is refused, and no password is asked for`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let rows: [(String, [UInt8])] = [
      ("P-384", try pem(["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"])),
      ("secp256k1", try pem(["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"])),
      ("RSA", try pem(["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])),
      ("Ed448", try pem(["-algorithm", "ed448"])), ("X25519", try pem(["-algorithm", "x25519"])),
      ("encrypted", try pem(Self.ed25519, then: ["pkcs8", "-topk8", "-passout", "pass:x"])),
      ("a public key", try pem(Self.ed25519, then: ["pkey", "-pubout"])), ("nothing", []), ("text", Array("key".utf8)),
      ("DER", try pem(Self.ed25519, then: ["pkey", "-outform", "DER"])),
      ("too much", [UInt8](repeating: 0x20, count: PEMSigningKey.byteLimit + 1)),
    ]
    for (name, bytes) in rows {
      #expect(throws: TLSError.self, "\(name)") { _ = try key(bytes) }
    }
  }
}
