import Foundation
import Glibc
import Testing

extension Operation {
  /// A suspension's life: it is seen everywhere, survives a restart, and ends by itself, by command or by policy.
  @Suite struct BreakerTests {
    /// A server whose key is not the pinned one, as after a rotation that nobody pinned.
    private func rotated() throws -> Servers.Running {
      try Servers.nginx(Certificates.shared().other, protocols: "TLSv1.2")
    }

    @Test("A suspension is in metrics, log, status, page and explain, and ends by itself") func life() throws {
      let server = try rotated()
      let stage = try BreakerStage(
        BreakerStage.settings(port: server.port, cooldown: 6).with { $0.audit = #"file: "audit.jsonl""# })
      #expect(try stage.tunnels(19) == ["refused": 19])
      #expect(try stage.figures().alerts.isEmpty, "too few samples for any word")
      #expect(try stage.tunnels(6) == ["refused": 1, "other": 5])

      #expect(try stage.trips("suspend") == 1)
      #expect(try stage.trips("alert") == 0)
      #expect(try stage.state() == ["suspended"])
      #expect(try stage.ratio() == 1)
      let suspension = try #require(try stage.figures().suspensions.first)
      #expect((suspension.rule, suspension.host) == (BreakerStage.host, "api.pinfold.test:443"))
      #expect((suspension.failures, suspension.samples, suspension.ratio) == (20, 20, 1))
      #expect(suspension.until != nil)
      let page = try #require(try HTTP.get("/", port: stage.pinfold.admin)).body
      #expect(page.contains("<th>Suspended</th>"))
      let text = try Pinfold.command("status", "--admin", "127.0.0.1:\(stage.pinfold.admin)", "--format", "text")
      #expect(text.succeeded && text.output.contains("suspended: \(BreakerStage.host) for client "), "\(text)")
      try Wait.untilTrue("the record") { !stage.kept.isEmpty }
      let file = stage.pinfold.workspace.path("pinfold.json5")
      let explained = try Pinfold.command("explain", "-c", file, BreakerStage.host)
      #expect(explained.output.contains("mode: suspended") && explained.succeeded, "\(explained)")
      let other = try Pinfold.command("explain", "-c", file, "--user", "alice", BreakerStage.host)
      #expect(other.output.contains("mode: enforce"), "\(other)")
      #expect(other.output.contains("steps: suspended for 1 other clients, at most until "), "\(other)")
      let decision = try #require(stage.pinfold.decisions.last)
      #expect(decision["reason"] as? String == "suspended_mismatch" && decision["would_refuse"] as? Bool == true)

      try Wait.untilTrue("the end of the suspension", seconds: 15) { try stage.figures().suspensions.isEmpty }
      #expect(try stage.tunnels(3) == ["refused": 3])
      #expect(try stage.state() == ["enforce"])
      try Wait.untilTrue("the line of its end") { !stage.lines(BreakerStage.rearmed).isEmpty }
      #expect(stage.lines(BreakerStage.rearmed).compactMap { $0["why"] as? String } == ["elapsed"])
      try Wait.untilTrue("the record's end") { stage.kept.isEmpty }
      let records = try stage.audit().split(separator: "\n").filter { $0.contains(#""event":"breaker""#) }
      #expect(records.count == 2, "\(records)")
      #expect(records.first?.contains(#""action":"suspend""#) == true && !records.description.contains("127.0.0.1"))
      #expect(records.last?.contains(#""why":"elapsed""#) == true)
      // The audit and the status call the client by the same name.
      #expect(records.allSatisfy { $0.contains(#""client":"\#(suspension.client ?? "")""#) })
    }

    struct Terms: Sendable, CustomTestStringConvertible {
      let testDescription: String
      var autoDisable = true
      var cooldown = 600
      var isTaken = false
    }

    /// Guards: an explanation of its own that `run` does not go by.
    @Test(
      "What a restart does not take up, explain does not show either",
      arguments: [
        Terms(testDescription: "the same terms", isTaken: true),
        Terms(testDescription: "auto_disable is off", autoDisable: false),
        Terms(testDescription: "a shorter cool-down", cooldown: 5),
      ])
    func explain(terms: Terms) throws {
      let server = try rotated()
      let before = try BreakerStage(BreakerStage.settings(port: server.port, samples: 2))
      #expect(try before.tunnels(3) == ["refused": 2, "other": 1])
      try Wait.untilTrue("the record") { !before.kept.isEmpty }
      before.pinfold.child.signal(SIGTERM)
      try before.pinfold.child.wait()

      // The same version, signed anew.
      _ = try before.pinfold.sign(
        BreakerStage.settings(
          port: server.port, autoDisable: terms.autoDisable, samples: 2, cooldown: terms.cooldown))
      let file = before.pinfold.workspace.path("pinfold.json5")
      let explained = try Pinfold.command("explain", "-c", file, BreakerStage.host)
      #expect(explained.output.contains("mode: \(terms.isTaken ? "suspended" : "enforce")\n"), "\(explained)")
      #expect(explained.output.contains("steps: suspended for ") == terms.isTaken, "\(explained)")
      let other = try Pinfold.command("explain", "-c", file, "--user", "alice", BreakerStage.host)
      #expect(other.output.contains("steps: suspended for ") == terms.isTaken, "\(other)")
      var after = before
      after.pinfold = try Pinfold(after: before.pinfold)
      #expect(try after.tunnels(1) == (terms.isTaken ? ["other": 1] : ["refused": 1]))
    }

    @Test("A suspension survives SIGTERM and kill -9, for the client it was for", arguments: [SIGTERM, SIGKILL])
    func restart(signal: Int32) throws {
      let server = try rotated()
      let before = try BreakerStage(BreakerStage.settings(port: server.port, samples: 2))
      #expect(try before.tunnels(4, from: "127.0.0.2") == ["refused": 2, "other": 2])
      try Wait.untilTrue("the record") { !before.kept.isEmpty }
      before.pinfold.child.signal(signal)
      try before.pinfold.child.wait()

      var after = before
      after.pinfold = try Pinfold(after: before.pinfold)
      #expect(try after.figures().suspensions.map(\.rule) == [BreakerStage.host])
      #expect(try after.tunnels(3, from: "127.0.0.2") == ["other": 3])
      #expect(try after.tunnels(1, from: "127.0.0.1") == ["refused": 1])
      #expect(after.lines("enforcement is still suspended").count == 1)
    }

    /// Guards: the seal. Every byte of the record is altered elsewhere.
    @Test("A record that is altered, or another installation's, suspends nothing", arguments: [true, false])
    func foreign(isAltered: Bool) throws {
      let server = try rotated()
      let settings = try BreakerStage.settings(port: server.port, samples: 2)
      let before = try BreakerStage(settings)
      #expect(try before.tunnels(3) == ["refused": 2, "other": 1])
      try Wait.untilTrue("the record") { !before.kept.isEmpty }
      before.pinfold.child.signal(SIGKILL)
      try before.pinfold.child.wait()
      let record = try #require(before.kept.first)
      let named = try Command(["grep", "-rl", "pinfold.test", before.pinfold.workspace.path("state")])
      #expect(named.output.isEmpty, "the state directory names the host: \(named)")
      if isAltered {
        var bytes = try Data(contentsOf: record)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: record)
      } else {
        let other = try BreakerStage(settings)
        #expect(try other.tunnels(2) == ["refused": 2])
        try Wait.untilTrue("the record") { !other.kept.isEmpty }
        try FileManager.default.removeItem(at: record)
        try FileManager.default.copyItem(at: try #require(other.kept.first), to: record)
      }
      var after = before
      after.pinfold = try Pinfold(after: before.pinfold)
      #expect(try after.figures().suspensions.isEmpty)
      #expect(try after.tunnels(1) == ["refused": 1])
      #expect(after.lines("suspensions of an earlier run are not used").count == 1)
    }

    @Test("Another policy, and one without auto_disable, re-arms at once") func policy() throws {
      let server = try rotated()
      let settings = try BreakerStage.settings(port: server.port, samples: 2)
      let stage = try BreakerStage(settings)
      #expect(try stage.tunnels(3) == ["refused": 2, "other": 1])
      // The same policy once more changes nothing.
      try stage.pinfold.reload(settings)
      try Wait.untilTrue("a reload") {
        try stage.pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="success""#) == 2
      }
      #expect(try stage.tunnels(1) == ["other": 1])
      let off = try BreakerStage.settings(port: server.port, autoDisable: false, samples: 2).with { $0.version = 2 }
      try stage.pinfold.reload(off)
      try Wait.untilTrue("version 2") { try stage.pinfold.metrics().sum("pinfold_policy_version") == 2 }
      #expect(try stage.tunnels(10) == ["refused": 10])
      #expect(stage.lines(BreakerStage.rearmed).compactMap { $0["why"] as? String } == ["policy"])
      #expect(try stage.trips("alert") == 1)
      try Wait.untilTrue("the record's end") { stage.kept.isEmpty }
    }

    /// Guards: the token, in constant time and from its file alone; and that nothing else of the port changes anything.
    @Test("Re-arming needs the token") func rearm() throws {
      let server = try rotated()
      let stage = try BreakerStage(BreakerStage.settings(port: server.port, samples: 2))
      #expect(try stage.tunnels(3) == ["refused": 2, "other": 1])
      let path = "/rearm?host=\(BreakerStage.host)"
      let token = stage.pinfold.workspace.read("state/admin.token").trimmingCharacters(in: .newlines)
      #expect(token.count == 64)
      func post(_ fields: String, _ path: String = path) throws -> Int? {
        try HTTP.ask("POST", path, fields: fields + "Content-Length: 0\r\n", port: stage.pinfold.admin)?.status
      }
      #expect(try post("") == 401)
      #expect(try post("Authorization: Bearer \(String(token.reversed()))\r\n") == 401)
      #expect(try post("Authorization: Basic \(token)\r\n") == 401)
      #expect(try HTTP.get(path, port: stage.pinfold.admin)?.status == 405)
      #expect(try HTTP.ask("HEAD", path, port: stage.pinfold.admin)?.status == 405)
      let right = "Authorization: Bearer \(token)\r\n"
      for (path, status) in [
        ("/rearm", 400), ("/rearm?host=", 400), ("/rearm?host=a&host=b", 400), ("/rearm?host=%zz", 400),
        ("/rearm?host=unknown.test", 404), ("/status", 405), ("/metrics", 405), ("/", 405),
      ] {
        #expect(try post(right, path) == status, "\(path)")
      }
      #expect(try stage.tunnels(1) == ["other": 1], "nothing of that re-armed it")
      #expect(stage.lines("admin request refused: no token, or a wrong one").count == 3)
      #expect(!stage.pinfold.child.errors.contains(token))

      let file = stage.pinfold.workspace.path("pinfold.json5")
      let wrong = try stage.pinfold.workspace.write("wrong", String(repeating: "0", count: 64))
      let refused = try Pinfold.command("status", "-c", file, "--token-file", wrong, "--rearm", BreakerStage.host)
      #expect(refused.ending == .exited(1) && refused.errors.contains("401"), "\(refused)")
      let armed = try Pinfold.command("status", "-c", file, "--rearm", BreakerStage.host)
      #expect(armed.succeeded && armed.output == "\(BreakerStage.host) is armed: 1 suspension ended\n", "\(armed)")
      #expect(try stage.figures().suspensions.isEmpty)
      #expect(try stage.tunnels(1) == ["refused": 1])
      #expect(stage.lines(BreakerStage.rearmed).compactMap { $0["why"] as? String } == ["command"])
      let again = try Pinfold.command("status", "-c", file, "--rearm", BreakerStage.host)
      #expect(again.output.contains("nothing was suspended"), "\(again)")
      let attributes = try FileManager.default.attributesOfItem(
        atPath: stage.pinfold.workspace.path("state/admin.token"))
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    /// Guards: that who ends a suspension is told so when the disk has it, and not before.
    @Test("A re-armed rule stays armed, whatever ends the proxy right after") func rearmed() throws {
      let server = try rotated()
      let before = try BreakerStage(BreakerStage.settings(port: server.port, samples: 2))
      #expect(try before.tunnels(3) == ["refused": 2, "other": 1])
      try Wait.untilTrue("the record") { !before.kept.isEmpty }
      let record = try #require(before.kept.first)
      func rearm() throws -> Command {
        let file = before.pinfold.workspace.path("pinfold.json5")
        return try Pinfold.command("status", "-c", file, "--rearm", BreakerStage.host)
      }
      // In the record's place what cannot be removed as a file.
      let aside = URL(filePath: before.pinfold.workspace.path("aside"))
      try FileManager.default.moveItem(at: record, to: aside)
      try FileManager.default.createDirectory(at: record.appending(path: "in"), withIntermediateDirectories: true)
      let undone = try rearm()
      #expect(undone.ending == .exited(1) && undone.errors.contains("(503)"), "\(undone)")
      #expect(undone.errors.contains("armed for now: 1 suspension ended, but the disk has not taken it"), "\(undone)")
      #expect(try before.tunnels(1) == ["refused": 1])
      try FileManager.default.removeItem(at: record)
      try FileManager.default.moveItem(at: aside, to: record)
      let armed = try rearm()
      #expect(armed.succeeded, "\(armed)")
      #expect(before.kept.isEmpty, "it was said before it was so")
      before.pinfold.child.signal(SIGKILL)
      try before.pinfold.child.wait()
      var after = before
      after.pinfold = try Pinfold(after: before.pinfold)
      #expect(try after.figures().suspensions.isEmpty)
      #expect(try after.tunnels(1) == ["refused": 1])
    }
  }
}
