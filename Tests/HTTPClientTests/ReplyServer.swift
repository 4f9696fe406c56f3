import Foundation
import PinfoldTLS

/// `Servers/replies.py` with certificates of one run, made by openssl; ends with the test process.
struct ReplyServer: Sendable {
  /// What listens on a port of its own.
  enum Port: Int, Sendable {
    case plain, good, wrongName, stranger, expired, tls12, tls11, mute, reset
  }

  static let shared = Result { try ReplyServer() }

  /// Trusts the root of this run alone.
  private let context: ClientContext
  private let ports: [UInt16]
  private let process: Process

  struct Failed: Error { let what: String }

  private init() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-http-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Self.authority("root", folder)
    try Self.authority("stranger-root", folder)
    let good = "DNS:localhost,IP:127.0.0.1"
    try Self.leaf("good", names: good, by: "root", folder)
    try Self.leaf("name", names: "DNS:elsewhere.test,IP:127.0.0.9", by: "root", folder)
    try Self.leaf("stranger", names: good, by: "stranger-root", folder)
    try Self.leaf("expired", names: good, by: "root", folder, days: "-1")
    context = try ClientContext(trusting: TrustStore(caFile: "\(folder)/root.pem"))

    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Servers/replies.py").path
    process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", script, folder]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    // The server ends when this process does, since that closes the pipe.
    process.standardInput = Pipe()
    try process.run()
    var text = ""
    while !text.hasSuffix("\n") {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw Failed(what: "replies.py did not start") }
      text += String(decoding: data, as: UTF8.self)
    }
    ports = text.split(whereSeparator: \.isWhitespace).compactMap { UInt16($0) }
    guard ports.count == 9 else { throw Failed(what: text) }
  }

  func port(_ port: Port) -> UInt16 { ports[port.rawValue] }

  /// What trusts the root of this run alone.
  func trust() -> ClientContext { context }

  private static func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failed(what: "openssl \(arguments)") }
  }

  private static let newKey = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

  private static func authority(_ name: String, _ folder: String) throws {
    try openssl(
      newKey + [
        "-x509", "-subj", "/CN=\(name)", "-days", "2", "-keyout", "\(folder)/\(name).key", "-out",
        "\(folder)/\(name).pem",
      ])
  }

  /// A leaf with its key in one file.
  private static func leaf(
    _ name: String, names: String, by issuer: String, _ folder: String, days: String = "2"
  ) throws {
    let path = "\(folder)/\(name)"
    try openssl(newKey + ["-subj", "/CN=localhost", "-keyout", "\(path).key", "-out", "\(path).csr"])
    try "subjectAltName=\(names)\n".write(toFile: "\(path).ext", atomically: true, encoding: .utf8)
    try openssl([
      "x509", "-req", "-in", "\(path).csr", "-CA", "\(folder)/\(issuer).pem", "-CAkey", "\(folder)/\(issuer).key",
      "-CAcreateserial", "-days", days, "-extfile", "\(path).ext", "-out", "\(path).crt",
    ])
    let whole = try ["crt", "key"].map { try String(contentsOfFile: "\(path).\($0)", encoding: .utf8) }.joined()
    try whole.write(toFile: "\(path).pem", atomically: true, encoding: .utf8)
  }
}
