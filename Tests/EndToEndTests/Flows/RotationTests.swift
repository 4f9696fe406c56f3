import Foundation
import Testing

extension Operation {
  /// Keys that change while a client asks on and on.
  @Suite struct RotationTests {
    /// A host, the proxy before it, and a client that never rests.
    private struct Stage {
      let folder: Workspace
      let server: Child
      let pinfold: Pinfold
      let client: Child
      private let port: UInt16

      init(_ identity: Certificates.Identity, pins: String, version: String) throws {
        let folder = try Workspace("rotation")
        try Program.install(identity, as: "server.pem", in: folder)
        let server = try Program.start("steady_server.py", [folder.folder.path, version])
        let port = try Wait.until("the server's port") {
          UInt16(server.output.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        (self.folder, self.server, self.port) = (folder, server, port)
        pinfold = try Pinfold(Self.settings(port, pins: pins, version: 1))
        client = try Program.start(
          "steady_client.py", ["https://api.pinfold.test/", folder.folder.path], proxy: pinfold.port)
      }

      private static func settings(_ port: UInt16, pins: String, version: Int) throws -> Settings {
        var settings = Settings()
        settings.hosts["api.pinfold.test"] = "{ pins: { \(pins) } }"
        settings.resolve["api.pinfold.test:443"] = port
        settings.rootFile = try Certificates.shared().rootFile
        settings.version = version
        return settings
      }

      /// Publishes another policy and waits until it is in force.
      func publish(_ pins: String, version: Int) throws {
        try pinfold.reload(Self.settings(port, pins: pins, version: version))
        try Wait.untilTrue("version \(version)") {
          try pinfold.metrics().sum("pinfold_policy_version") == Double(version)
        }
      }

      func install(_ identity: Certificates.Identity) throws {
        try Program.install(identity, as: "server.pem", in: folder)
      }

      /// Waits until the client has asked that often again.
      func ask(_ times: Int) throws {
        let before = answers.count
        try Wait.untilTrue("\(times) requests more", seconds: 30) { answers.count >= before + times }
      }

      var answers: [Substring] { client.output.split(separator: "\n") }

      func stop() throws {
        try folder.write("stop", "")
        #expect(try client.wait() == .exited(0), "\(client.errors)")
      }
    }

    @Test(
      "Backup pin first, then the server's key, then the new primary: not one request fails",
      arguments: ["TLSv1_2", "TLSv1_3"]
    )
    func drill(version: String) throws {
      let certificates = try Certificates.shared()
      let (old, new) = (certificates.ecdsa, certificates.other)
      let stage = try Stage(old, pins: "primary: \"\(old.pin)\"", version: version)
      try stage.ask(20)
      try stage.publish("primary: \"\(old.pin)\", backup: \"\(new.pin)\"", version: 2)
      try stage.ask(20)
      try stage.install(new)
      try stage.ask(20)
      try stage.publish("primary: \"\(new.pin)\"", version: 3)
      try stage.ask(20)
      try stage.stop()
      #expect(stage.answers.count >= 80 && stage.answers.allSatisfy { $0 == "ok" }, "\(Set(stage.answers))")
    }

    @Test("The server's key before the backup pin: every request fails until the emergency pin is there")
    func emergency() throws {
      let certificates = try Certificates.shared()
      let (old, new) = (certificates.ecdsa, certificates.other)
      let stage = try Stage(old, pins: "primary: \"\(old.pin)\"", version: "TLSv1_3")
      try stage.ask(5)
      try stage.install(new)
      // One request may be under way while the file changes.
      try stage.ask(1)
      let swapped = stage.answers.count
      try stage.ask(10)
      let published = stage.answers.count
      try stage.publish("primary: \"\(old.pin)\", emergency: \"\(new.pin)\"", version: 2)
      try stage.ask(1)
      let mended = stage.answers.count
      try stage.ask(10)
      try stage.stop()
      #expect(stage.answers[swapped..<published].allSatisfy { $0.hasPrefix("failed") })
      #expect(stage.answers[mended...].allSatisfy { $0 == "ok" }, "\(stage.answers)")
    }
  }
}
