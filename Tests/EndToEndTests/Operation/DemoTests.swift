import Foundation
import Glibc
import Testing

extension Operation {
  /// What a stranger sees first. The demonstration has its ports written into it, so the test stands back where
  /// somebody else listens there.
  @Suite(.enabled(if: FreePort.areFree(3128, 9128), "127.0.0.1:3128 or :9128 is taken")) struct DemoTests {
    @Test("`demo --once` shows a pinned host passing and a wrong key refused, and leaves nothing behind")
    func once() throws {
      let temporary = try Workspace("demo")
      let demo = try Command(
        [Pinfold.binary, "demo", "--once"], environment: ["TMPDIR": temporary.folder.path], seconds: 50)
      #expect(demo.succeeded, "\(demo)")
      let told = demo.output + demo.errors
      #expect(told.contains("pin_match") && told.contains("pin_mismatch"), "\(demo)")
      #expect(told.contains("127.0.0.1:3128"))
      #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.folder.path).isEmpty)
    }

    @Test("The demonstration serves a real client until it is told to end") func serves() throws {
      let demo = try Child([Pinfold.binary, "demo"])
      try Wait.untilTrue("the demonstration to be ready", seconds: 30) {
        if let ending = demo.poll() { throw HarnessError("demo \(ending)\n\(demo.errors)\(demo.output)") }
        return try HTTP.get("/readyz", port: 9128)?.status == 200
      }
      demo.signal(SIGINT)
      #expect(try demo.wait(seconds: 20) == .exited(0))
    }

    /// Guards: servers, and a proxy, that stay behind when their terminal is closed.
    @Test("The demonstration ends with its terminal") func hangUp() throws {
      let temporary = try Workspace("demo")
      let (port, admin) = try (FreePort.next(), FreePort.next())
      let demo = try Child(
        [Pinfold.binary, "demo", "--port", "\(port)", "--admin-port", "\(admin)"],
        environment: ["TMPDIR": temporary.folder.path])
      try Wait.untilTrue("the demonstration to be ready", seconds: 30) {
        if let ending = demo.poll() { throw HarnessError("demo \(ending)\n\(demo.errors)\(demo.output)") }
        return try HTTP.get("/readyz", port: admin)?.status == 200
      }
      demo.signal(SIGHUP)
      #expect(try demo.wait(seconds: 20) == .exited(0))
      #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.folder.path).isEmpty)
    }
  }
}
