import Foundation

/// `Servers/bundles.py`: hands out signed policies over HTTPS, well or badly. It can be taken away and brought back.
final class BundleServer {
  let port: UInt16
  private let workspace: Workspace
  private let identity: Certificates.Identity
  private var child: Child?

  /// On a free port; nothing is served before `start`.
  init(_ identity: Certificates.Identity) throws {
    workspace = try Workspace("bundles")
    port = try FreePort.next()
    self.identity = identity
  }

  func url(_ name: String = "policy.signed.json", host: String = "127.0.0.1") -> String {
    "https://\(host):\(port)/\(name)"
  }

  /// Starts, or starts again, perhaps as somebody else.
  func start(as other: Certificates.Identity? = nil) throws {
    stop()
    let shown = other ?? identity
    let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Servers/bundles.py").path
    let child = try Child(["python3", script, shown.chainFile, shown.keyFile, workspace.folder.path, "\(port)"])
    self.child = child
    try Wait.untilTrue("bundles.py on port \(port)") {
      if let ending = child.poll() { throw HarnessError("bundles.py \(ending)\n\(child.errors)") }
      return try Socket.connect(to: port) != nil
    }
  }

  /// Takes the server away.
  func stop() { child = nil }

  /// Serves this file from now on, whole at once.
  func publish(_ path: String, as name: String = "policy.signed.json") throws {
    try workspace.write(name, String(contentsOfFile: path, encoding: .utf8))
  }

  /// What goes wrong from now on; nothing with an empty word.
  func misbehave(_ mode: String) throws { try workspace.write("mode", mode) }

  /// The requests so far: status and If-None-Match (`-` without one).
  var requests: [(status: Int, tag: String)] {
    workspace.read("requests").split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 2, let status = Int(words[0]) else { return nil }
      return (status, String(words[1]))
    }
  }
}
