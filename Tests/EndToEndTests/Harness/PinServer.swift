import Foundation

/// `pinfold pin-server`, running on a port of the system's choice; killed and reaped with its owner.
final class PinServer: Sendable {
  /// What signs.
  enum Key: String, CaseIterable, Sendable {
    case keygen, ed25519, p256

    /// Makes the key file, by ourselves or by openssl.
    func make(at path: String) throws {
      switch self {
      case .keygen: try Command.output([Pinfold.binary, "keygen", "-o", path])
      case .ed25519: try Command.output(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path])
      case .p256:
        try Command.output([
          "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path,
        ])
      }
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }
  }

  let child: Child
  let workspace: Workspace
  private let facts: [String: String]

  /// Starts with these options behind the key's, and waits until it says where it listens. `descriptors`: how many it may
  /// have, as prlimit(1) reads it.
  init(_ key: Key = .keygen, in workspace: Workspace? = nil, descriptors: String? = nil, _ options: [String]) throws {
    let workspace = try workspace ?? Workspace("pin-server")
    self.workspace = workspace
    try key.make(at: workspace.path("key"))
    let child = try Child(
      (descriptors.map { ["prlimit", "--nofile=\($0)"] } ?? [])
        + [Pinfold.binary, "pin-server", "-k", workspace.path("key"), "--listen", "127.0.0.1:0"] + options)
    self.child = child
    facts = try Wait.until("the pin server") {
      if let ending = child.poll() { throw HarnessError("pin-server \(ending)\n\(child.errors)\(child.output)") }
      guard child.output.contains("trusted_key: ") else { return nil }
      let pairs = child.output.split(separator: "\n").compactMap { line -> (String, String)? in
        let parts = line.split(separator: ": ", maxSplits: 1).map(String.init)
        return parts.count == 2 ? (parts[0], parts[1]) : nil
      }
      return Dictionary(pairs) { $1 }
    }
  }

  /// A line of what it said at start.
  func fact(_ name: String) -> String { facts[name] ?? "" }

  /// What curl gets: the status, the type, the body.
  func curl(_ target: String, _ options: String...) throws -> (status: Int, type: String, body: String) {
    let output = try Command.output(
      ["curl", "-q", "-sS", "-g", "--max-time", "30", "-w", "\n%{http_code} %{content_type}"] + options
        + ["http://\(fact("listen"))\(target)"])
    let lines = output.split(separator: "\n", omittingEmptySubsequences: false)
    let words = (lines.last ?? "").split(separator: " ").map(String.init)
    return (Int(words.first ?? "") ?? 0, words.dropFirst().first ?? "", lines.dropLast().joined(separator: "\n"))
  }

  /// What a record says, once Python and openssl have verified it.
  struct Said: Decodable, Equatable {
    let domain: String
    let pins: [String]
    let ttl: Int
    let key: String
  }

  /// Verifies a record by other programs than our own.
  static func verify(_ record: String, format: String, key: String) throws -> Said? {
    let command = try Command(["python3", "\(Client.scripts)/verify_record.py", format, key], input: record)
    guard command.succeeded else { return nil }
    return try JSONDecoder().decode(Said.self, from: Data(command.output.utf8))
  }

  /// The record of a host, verified.
  func record(_ query: String) throws -> Said {
    let answer = try curl("/v1/pins?domain=\(query)")
    let said = try Self.verify(answer.body, format: fact("format"), key: fact("trusted_key"))
    guard let said, answer.status == 200 else { throw HarnessError("\(answer)\n\(child.errors)") }
    return said
  }
}

extension Certificates {
  /// `sha256/…` in the form that records of Ed25519 have.
  static func hex(_ pin: String) -> String {
    let digest = Data(base64Encoded: String(pin.dropFirst("sha256/".count))) ?? Data()
    return digest.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
  }
}
