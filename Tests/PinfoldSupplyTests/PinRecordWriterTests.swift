import Foundation
import PinfoldCrypto
import PinfoldModel
import PinfoldSupply
import PinfoldTLS
import Testing

/// What we write is what the family's servers write, and what we read.
@Suite struct PinRecordWriterTests {
  private static let pins = [UInt8(1), 2, 3].compactMap { Digest256([UInt8](repeating: $0, count: 32)) }
  private static let now = Timestamp(seconds: 1_795_219_200)

  private static func openssl(_ arguments: [String]) throws -> [UInt8] {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let bytes = [UInt8](output.fileHandleForReading.readDataToEndOfFile())
    process.waitUntilExit()
    return bytes
  }

  /// Keys of all three kinds.
  private static func keys() throws -> [RecordSigningKey] {
    let ed25519 = try openssl(["genpkey", "-algorithm", "ed25519"])
    let p256 = try openssl(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
    return [
      .keygen(try Ed25519SecretKey()), .pem(try PEMSigningKey(pem: ed25519.span)),
      .pem(try PEMSigningKey(pem: p256.span)),
    ]
  }

  @Test func `every record we write we read`() throws {
    var count = 0
    for key in try Self.keys() {
      for format in PinRecord.Format.allCases {
        guard let writer = PinRecordWriter(format, key: key, ttlSeconds: 600) else {
          #expect(!key.isEd25519 && format != .jws)
          continue
        }
        let bytes = try writer.write("API.example.com", pins: Self.pins, at: Self.now)
        let trusted = try PinServiceFixture.keys([Base64.encode(key.publicKey)])
        #expect(trusted.ids == [key.id])
        let terms = try PinServiceFixture.terms("api.example.com", now: Self.now, unbound: format == .fingerprint)
        let record = try PinRecord(parsing: bytes, keys: trusted, terms: terms)
        #expect(record.format == format && record.keyID == key.id)
        #expect(record.pins == Self.pins.prefix(format == .fingerprint ? 1 : 3).map(Pin.publicKey))
        #expect(record.expires.seconds == Self.now.seconds + 600)
        count += 1
      }
    }
    #expect(count == 7)
  }

  @Test(arguments: PinServiceFixture.captured)
  func `written again by us, a captured answer differs in its signature and key alone`(
    _ row: PinServiceFixture.Captured
  ) throws {
    let made = try #require(Timestamp(row.made))
    let ttl = try #require(Timestamp(row.ends)).seconds - made.seconds
    let pins = row.pins.compactMap { text in
      Digest256(Hex.decode(text) ?? Base64.decode(text) ?? [])
    }
    let format = try #require(PinRecord.Format(rawValue: row.format))
    let key = try #require(try Self.keys().first { $0.isEd25519 == (format == .ed25519) })
    let writer = try #require(PinRecordWriter(format, key: key, ttlSeconds: ttl))
    let ours = String(decoding: try writer.write(row.host, pins: pins, at: made), as: UTF8.self)
    func plain(_ text: String) throws -> String {
      guard format == .jws else { return String(try #require(text.split(separator: "\"signature\"").first)) }
      let parts = text.dropFirst(8).split(separator: ".").prefix(2)
      return parts.compactMap { Base64.decodeURLSafe($0) }.map { String(decoding: $0, as: UTF8.self) }.joined()
    }
    #expect(try plain(ours).replacing(key.id, with: row.keyID) == plain(row.response))
    #expect(ours.utf8.count == row.response.utf8.count)
  }

  @Test func `nothing is written that could not be read`() throws {
    let writer = try #require(PinRecordWriter(.ed25519, key: .keygen(Ed25519SecretKey()), ttlSeconds: 1))
    for host in ["", "*.example.com", "a b", "\"", "a\nb", " api.example.com"] {
      #expect(throws: TLSError.self) { try writer.write(host, pins: Self.pins, at: Self.now) }
    }
    #expect(throws: TLSError.self) { try writer.write("api.example.com", pins: [], at: Self.now) }
    #expect(PinRecordWriter(.jws, key: writer.key, ttlSeconds: 0) == nil)
  }

  @Test func `key files of both forms are read, and open modes are warned of`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let secret = try Ed25519SecretKey()
    try secret.write(to: "\(folder)/keygen")
    let pem = try Self.openssl(["genpkey", "-algorithm", "ed25519"])
    for (name, bytes) in [
      ("pem", pem), ("text", Array("not a key".utf8)), ("empty", []), ("half", Array(pem.prefix(60))),
    ] {
      try PrivateFile.create("\(folder)/\(name)", bytes: bytes)
    }
    var warnings: [String] = []
    let keygen = try RecordSigningKey(path: "\(folder)/keygen", warnings: &warnings)
    #expect(keygen.publicKey == secret.publicKey.der && keygen.id == String(secret.publicKey.keyID.prefix(8)))
    #expect(try RecordSigningKey(path: "\(folder)/pem", warnings: &warnings).isEd25519)
    #expect(warnings == [])
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: "\(folder)/keygen")
    _ = try RecordSigningKey(path: "\(folder)/keygen", warnings: &warnings)
    #expect(warnings == ["\(folder)/keygen: others may use this secret (mode 0644); chmod 600 it"])
    for name in ["text", "empty", "half", "missing"] {
      let error = #expect(throws: RecordSigningKeyError.self) {
        try RecordSigningKey(path: "\(folder)/\(name)", warnings: &warnings)
      }
      #expect(error?.message.contains("\(folder)/\(name)") == true, "\(error?.message ?? "")")
    }
  }
}
