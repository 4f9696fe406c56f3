import Foundation

/// A self-signed certificate and its key, made by the openssl command for this run, in files that go with the object.
final class Identity: Sendable {
  let certificatePath: String
  let keyPath: String
  /// The certificate in DER.
  let der: [UInt8]
  private let folder: URL

  /// `key` as openssl-req(1) takes it behind `-newkey`.
  init(_ name: String, key: [String]) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    certificatePath = folder.appending(path: "cert.pem").path()
    keyPath = folder.appending(path: "key.pem").path()
    try Self.openssl(
      ["req", "-x509", "-nodes", "-newkey"] + key
        + ["-keyout", keyPath, "-out", certificatePath, "-subj", "/CN=\(name)", "-days", "2"])
    let derPath = folder.appending(path: "cert.der")
    try Self.openssl(["x509", "-in", certificatePath, "-outform", "DER", "-out", derPath.path()])
    der = [UInt8](try Data(contentsOf: derPath))
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  static let p256 = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
  static let rsa = ["rsa:2048"]
  static let ed25519 = ["ed25519"]

  private static func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Unexpected("openssl \(arguments)") }
  }
}

/// Something other happened than the test is about.
struct Unexpected: Error {
  let what: String
  init(_ what: String) { self.what = what }
}
