import Foundation
import Glibc
import Testing

extension Operation {
  /// One state directory, two running proxies.
  @Suite struct StateLockTests {
    private static func start(_ settings: Settings, beside first: Pinfold) throws -> Child {
      let text = settings.configurationText(
        proxy: try FreePort.next(), admin: try FreePort.next(), trustedKey: first.trustedKey)
      return try Child([Pinfold.binary, "run", "-c", try first.workspace.write("second.json5", text)])
    }

    /// Guards: an older version, or an older pin record, that one process writes over what the other one accepted; a
    /// token of the admin port and half-written records that the second start takes from the first process.
    @Test("A second proxy leaves the directory alone, and ends with what would be right") func second() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1)
      let first = try Pinfold(settings)
      let token = first.workspace.read("state/admin.token")
      try FileManager.default.createDirectory(
        atPath: first.workspace.path("state/cache"), withIntermediateDirectories: true)
      try first.workspace.write("state/cache/pins-half.new", "half a record")
      let second = try Self.start(settings, beside: first)
      #expect(try second.wait() == .exited(1))
      let state = first.workspace.path("state")
      #expect(second.errors.contains(state) && second.errors.contains("state_dir of its own"), "\(second.errors)")
      #expect(first.workspace.read("state/admin.token") == token)
      #expect(first.workspace.read("state/cache/pins-half.new") == "half a record")
      let rearmed = try HTTP.ask(
        "POST", "/rearm?host=api.pinfold.test", fields: "Authorization: Bearer \(token.dropLast())\r\n",
        port: first.admin)
      #expect(rearmed?.status == 200)

      // Commands that look do not wait for it.
      let file = first.workspace.path("pinfold.json5")
      #expect(try Pinfold.command("check", "-c", file).succeeded)
      let attributes = try FileManager.default.attributesOfItem(atPath: state + "/run.lock")
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test("Two proxies with a directory each run side by side") func apart() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1)
      let first = try Pinfold(settings)
      let second = try Self.start(settings.with { $0.stateDirectory = "other" }, beside: first)
      try Wait.untilTrue("the second proxy") { second.errors.contains("\"serving\"") }
      second.signal(SIGTERM)
      #expect(try second.wait() == .exited(0))
    }
  }
}
