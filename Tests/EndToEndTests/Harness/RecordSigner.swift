import Foundation

/// A key of a pin service, whose records are signed by the openssl command line: nothing of Pinfold's makes them.
struct RecordSigner: Sendable {
  enum Kind: String, CaseIterable, Sendable {
    /// `{"domain","pins","created","expires","ttl_seconds","keyId","alg","signature"}`
    case ed25519
    /// `{"jws"}` with ES256.
    case jws
  }

  /// What a record says. Times are seconds from now.
  struct Claims: Sendable {
    var domain = "api.pinfold.test"
    /// `sha256/…`
    var pins: [String]
    var created = 0.0
    var expires = 3600.0
    var ttl = 3600
  }

  let kind: Kind
  /// SPKI DER in base64.
  let publicKey: String
  private let workspace: Workspace

  init(_ kind: Kind = .ed25519) throws {
    self.kind = kind
    workspace = try Workspace("signer")
    let algorithm = kind == .ed25519 ? ["ED25519"] : ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    try Command.output(["openssl", "genpkey", "-out", workspace.path("key"), "-algorithm"] + algorithm)
    try Command.output([
      "openssl", "pkey", "-in", workspace.path("key"), "-pubout", "-outform", "DER", "-out", workspace.path("public"),
    ])
    publicKey = try Data(contentsOf: URL(filePath: workspace.path("public"))).base64EncodedString()
  }

  /// A whole record with these pins.
  func record(_ pins: String..., domain: String = "api.pinfold.test", ttl: Int = 3600, created: Double = 0) throws
    -> String
  {
    try record(Claims(domain: domain, pins: pins, created: created, expires: Double(ttl) + created, ttl: ttl))
  }

  /// A whole record.
  func record(_ claims: Claims) throws -> String {
    let now = Date()
    let digests = claims.pins.map { String($0.dropFirst("sha256/".count)) }
    switch kind {
    case .ed25519:
      let pins = digests.map { text in
        "\"" + (Data(base64Encoded: text) ?? Data()).map { String(format: "%02x", $0) }.joined() + "\""
      }
      let created = Self.text(now.addingTimeInterval(claims.created))
      let expires = Self.text(now.addingTimeInterval(claims.expires))
      let signed =
        "{\"domain\":\"\(claims.domain)\",\"pins\":[\(pins.joined(separator: ","))],\"created\":\"\(created)\","
        + "\"expires\":\"\(expires)\",\"ttl_seconds\":\(claims.ttl),\"keyId\":\"x\",\"alg\":\"Ed25519\""
      let signature = try sign(signed + "}").base64EncodedString()
      return signed + ",\"signature\":\"\(signature)\"}"
    case .jws:
      let pins = digests.map { "\"\($0)\"" }.joined(separator: ",")
      let created = Int((now.timeIntervalSince1970 + claims.created).rounded(.down))
      let expires = Int((now.timeIntervalSince1970 + claims.expires).rounded(.down))
      let payload =
        "{\"domain\":\"\(claims.domain)\",\"exp\":\(expires),\"iat\":\(created),\"pins\":[\(pins)],"
        + "\"ttl_seconds\":\(claims.ttl)}"
      let signed = Self.urlSafe(Data("{\"alg\":\"ES256\",\"kid\":\"x\"}".utf8)) + "." + Self.urlSafe(Data(payload.utf8))
      return "{\"jws\":\"\(signed).\(Self.urlSafe(Self.raw(try sign(signed))))\"}"
    }
  }

  private func sign(_ text: String) throws -> Data {
    let name = UUID().uuidString
    let file = try workspace.write(name, text)
    let output = workspace.path(name + ".sig")
    switch kind {
    case .ed25519:
      try Command.output([
        "openssl", "pkeyutl", "-sign", "-inkey", workspace.path("key"), "-rawin", "-in", file, "-out", output,
      ])
    case .jws: try Command.output(["openssl", "dgst", "-sha256", "-sign", workspace.path("key"), "-out", output, file])
    }
    return try Data(contentsOf: URL(filePath: output))
  }

  private static func text(_ date: Date) -> String { date.ISO8601Format() }

  private static func urlSafe(_ data: Data) -> String {
    data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// The two numbers of a DER signature in 32 bytes each (RFC 7518 §3.4).
  private static func raw(_ der: Data) -> Data {
    let bytes = [UInt8](der)
    var result: [UInt8] = []
    var position = 2
    for _ in 0..<2 {
      let count = Int(bytes[position + 1])
      let number = bytes[(position + 2)..<(position + 2 + count)].drop { $0 == 0 }
      result += [UInt8](repeating: 0, count: 32 - number.count) + number
      position += 2 + count
    }
    return Data(result)
  }
}
