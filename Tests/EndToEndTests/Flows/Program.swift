import Foundation

/// The Python programs of this folder, which know nothing of Pinfold.
enum Program {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Programs").path

  static func path(_ name: String) -> String { "\(folder)/\(name)" }

  /// What a program needs to find the proxy and to trust the test root.
  static func environment(proxy: UInt16) throws -> [String: String] {
    [
      "HTTPS_PROXY": "http://127.0.0.1:\(proxy)", "SSL_CERT_FILE": try Certificates.shared().rootFile,
      "PYTHONDONTWRITEBYTECODE": "1",
    ]
  }

  /// Starts a program with a small environment.
  static func start(_ name: String, _ arguments: [String], proxy: UInt16? = nil) throws -> Child {
    let variables = try proxy.map { try environment(proxy: $0) } ?? ["PYTHONDONTWRITEBYTECODE": "1"]
    return try Child(["python3", path(name)] + arguments, environment: variables)
  }

  /// Key and chain in one file, as Python's servers take them; replaced in one step.
  static func install(_ identity: Certificates.Identity, as name: String, in workspace: Workspace) throws {
    let text = try [identity.keyFile, identity.chainFile].map { try String(contentsOfFile: $0, encoding: .utf8) }
    try workspace.write(name, text.joined())
  }

  /// The JSON lines of a program's output so far.
  static func lines(_ child: Child) -> [[String: Any]] {
    child.output.split(separator: "\n").compactMap {
      (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
    }
  }
}
