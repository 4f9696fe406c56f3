import Foundation
import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldTLS

/// The server's side of a handshake, played by the test: what no server of this system can do (X25519MLKEM768, delegated
/// credentials), and what no honest one does. Signatures come from the `openssl` command.
struct PlayedServer {
  /// Keys and certificates made for this run: `leaf` may delegate, `plain` may not, `other` is the credential's key.
  static let folder: URL = {
    let folder = SystemServer.folder
    let curve = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    let usage = ["-addext", "keyUsage=critical,digitalSignature"]
    let delegation = ["-addext", "1.3.6.1.4.1.44363.44=ASN1:NULL"]
    for (name, extra) in [("leaf", usage + delegation), ("plain", usage), ("other", usage)] {
      let files = ["-keyout", "\(folder.path)/\(name).key", "-outform", "DER", "-out", "\(folder.path)/\(name).der"]
      run(["req", "-x509", "-newkey"] + curve + ["-nodes", "-subj", "/CN=\(name)", "-days", "30"] + files + extra)
      run([
        "pkey", "-in", "\(folder.path)/\(name).key", "-pubout", "-outform", "DER", "-out",
        "\(folder.path)/\(name).spki",
      ])
    }
    return folder
  }()

  private static func run(_ arguments: [String]) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try? process.run()
    process.waitUntilExit()
  }

  static func file(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: folder.appendingPathComponent(name)))
  }

  /// An ECDSA signature with SHA-256.
  static func sign(_ content: [UInt8], by key: String) throws -> [UInt8] {
    let name = UUID().uuidString
    try Data(content).write(to: folder.appendingPathComponent(name))
    let (key, input) = (folder.path + "/\(key).key", folder.path + "/" + name)
    run(["dgst", "-sha256", "-sign", key, "-out", input + ".sig", input])
    return try file(name + ".sig")
  }

  var certificate = "leaf"
  /// Who signs the CertificateVerify.
  var signer = "leaf"
  /// Content of a delegated_credential extension in the leaf's entry.
  var credential: [UInt8]?
  /// Puts another secret into the key schedule than the one agreed on.
  var hasWrongSecret = false

  static func u16(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }
  static func u24(_ value: Int) -> [UInt8] { [UInt8(value >> 16 & 255)] + u16(value) }
  private static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] { [type] + u24(body.count) + body }

  /// A credential for `key`, valid for `seconds` from now, signed by `issuer` for the certificate `leaf`.
  static func credential(
    for key: String, seconds: Int64, issuer: String, leaf: String = "leaf", scheme: Int = 0x0403
  ) throws -> [UInt8] {
    let der = try file(leaf + ".der")
    let begin = try #require(try Certificate(der: der).notBefore).seconds
    let valid = UInt32(clamping: Int64(Date().timeIntervalSince1970) - begin + seconds)
    let spki = try file(key + ".spki")
    let signed =
      [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: valid >> UInt32($0)) } + u16(scheme) + u24(spki.count) + spki
      + u16(0x0403)
    let context = [UInt8](repeating: 0x20, count: 64) + Array("TLS, server delegated credentials".utf8) + [0]
    let signature = try sign(context + der + signed, by: issuer)
    return signed + u16(signature.count) + signature
  }

  /// The whole answer to a hello that has a share of X25519MLKEM768, or of X25519 alone.
  func answer(_ hello: ClientHello) throws -> [UInt8] {
    let own = try KeyShareSecret(.x25519)
    let (group, share, agreed) = try Self.agree(own, hello)
    let keyShare = Self.u16(group) + Self.u16(share.count) + share
    let extensions = [0, 43, 0, 2, 3, 4, 0, 51] + Self.u16(keyShare.count) + keyShare
    let random = [UInt8](repeating: 0x5a, count: 32)
    let sessionID = Array(hello.sessionID)
    let body: [UInt8] =
      [3, 3] + random + [UInt8(sessionID.count)] + sessionID + [0x13, 0x01, 0] + Self.u16(extensions.count) + extensions
    let serverHello = Self.message(2, body)
    let transcript = try TranscriptHash(.aes128GCM, firstHello: hello.message, retry: nil)
    try transcript.add(serverHello[...])
    var wrong = [UInt8](repeating: 1, count: 32)
    let secrets = try KeySchedule13(.aes128GCM).handshakeSecrets(
      shared: hasWrongSecret ? SecretBytes(taking: &wrong) : agreed, transcriptHash: try transcript.current())
    let der = try Self.file(certificate + ".der")
    let inEntry = credential.map { [0, 34] + Self.u16($0.count) + $0 } ?? []
    let entry = Self.u24(der.count) + der + Self.u16(inEntry.count) + inEntry
    var flight = Self.message(8, [0, 0]) + Self.message(11, [0] + Self.u24(entry.count) + entry)
    try transcript.add(flight[...])
    let content = KeyProof.certificateVerifyContent(transcriptHash: try transcript.current())
    let signature = try Self.sign(content, by: signer)
    let verify = Self.message(15, Self.u16(0x0403) + Self.u16(signature.count) + signature)
    try transcript.add(verify[...])
    let finished = try DerivationKey(secrets.server, .aes128GCM).finished(transcriptHash: try transcript.current())
    flight += verify + Self.message(20, unsafe finished.withBytes { unsafe Array($0) })
    let sealing = try RecordProtection(.aes128GCM, secret: secrets.server, .sealing)
    let record = try #require(sealing.seal(type: 22, content: flight))
    return [22, 3, 3] + Self.u16(serverHello.count) + serverHello + record
  }

  private static func agree(
    _ own: KeyShareSecret, _ hello: ClientHello
  ) throws -> (group: Int, share: [UInt8], secret: SecretBytes) {
    guard let hybrid = hello.keyShares.first(where: { $0.group == 0x11ec }) else {
      let lone = try #require(hello.keyShares.first { $0.group == 0x001d })
      return (0x001d, own.publicShare, try own.derive(serverShare: Array(hello.message[lone.key])))
    }
    let client = Array(hello.message[hybrid.key])
    var sent = try MLKEM768.encapsulate(
      to: Array(client[..<MLKEM768.encapsulationKeyCount]), message: [UInt8](repeating: 7, count: 32))
    let lattice = SecretBytes(taking: &sent.secret)
    let curve = try own.derive(serverShare: Array(client[MLKEM768.encapsulationKeyCount...]))
    return (0x11ec, sent.ciphertext + own.publicShare, SecretBytes(lattice, followedBy: curve))
  }
}
