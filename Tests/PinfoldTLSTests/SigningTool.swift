import Foundation

/// A private key of the openssl command, in a file that goes with the object: signatures from another program.
final class SigningTool {
  let publicKey: [UInt8]
  private let path: String

  /// `P-256`, `P-384`, `P-521`, `RSA`, `RSA-PSS`, `ED25519` or `ED448`.
  init(_ kind: String) throws {
    path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString).pem").path()
    let options: [String] =
      switch kind {
      case "RSA", "RSA-PSS": ["-algorithm", kind, "-pkeyopt", "rsa_keygen_bits:2048"]
      case "ED25519", "ED448": ["-algorithm", kind]
      default: ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(kind)"]
      }
    _ = try runOpenSSL(["genpkey"] + options + ["-out", path])
    publicKey = try runOpenSSL(["pkey", "-in", path, "-pubout", "-outform", "DER"])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func sign(_ content: [UInt8], _ scheme: UInt16) throws -> [UInt8] {
    let input = path + ".in"
    try Data(content).write(to: URL(filePath: input))
    defer { try? FileManager.default.removeItem(atPath: input) }
    if scheme == 0x0807 || scheme == 0x0808 {
      return try runOpenSSL(["pkeyutl", "-sign", "-rawin", "-inkey", path, "-in", input])
    }
    let digests: [UInt16: String] = [2: "sha1", 3: "sha224", 4: "sha256", 5: "sha384", 6: "sha512"]
    let pss: [UInt16: String] = [
      0x0804: "sha256", 0x0805: "sha384", 0x0806: "sha512", 0x0809: "sha256", 0x080a: "sha384", 0x080b: "sha512",
    ]
    guard let digest = pss[scheme] ?? digests[scheme >> 8] else { throw Unexpected() }
    var arguments = ["dgst", "-\(digest)", "-sign", path]
    if pss[scheme] != nil { arguments += ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"] }
    return try runOpenSSL(arguments + [input])
  }
}

/// Runs the openssl command to its end and gives back what it wrote; an exit other than zero is an error.
func runOpenSSL(_ arguments: [String]) throws -> [UInt8] {
  let process = Process()
  process.executableURL = URL(filePath: "/usr/bin/openssl")
  process.arguments = arguments
  let output = Pipe()
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  try process.run()
  let bytes = [UInt8](output.fileHandleForReading.readDataToEndOfFile())
  process.waitUntilExit()
  guard process.terminationStatus == 0 else { throw Unexpected() }
  return bytes
}
