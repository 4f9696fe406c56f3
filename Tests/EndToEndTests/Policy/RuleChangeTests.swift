import Foundation
import Synchronization
import Testing

extension Operation {
  /// Rules that change while a tunnel is on its way: it is judged, and written down, by those of its verdict.
  @Suite struct RuleChangeTests {
    struct Change: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let rule: String
      let reason: String

      init(to rule: String, _ reason: String) {
        (testDescription, self.rule, self.reason) = (rule.isEmpty ? "nothing" : rule, rule, reason)
      }
    }

    static let changes = [
      Change(to: "", "pin_match"), Change(to: #"tls13: "deny""#, "tls13_denied"),
      Change(to: #"tls13: "key_log""#, "handshake_timeout"), Change(to: #"mode: "report""#, "pin_match"),
    ]

    /// Guards: a mode that was asked for at the beginning and never again.
    @Test("A rule that changes during the handshake decides on it", arguments: changes)
    func handshake(change: Change) throws {
      let identity = try Certificates.shared().ecdsa
      let (fetched, pinfold) = try fetch("https://api.pinfold.test/", from: identity, change) { port, rule in
        try Settings.pinned(identity.pin, port: port, rule: rule)
      }
      #expect(fetched.succeeded == (change.reason == "pin_match"), "\(fetched)")
      #expect(try pinfold.reasons() == [change.reason])
      #expect(pinfold.decisions.first?["policy"] as? Int == 2, "\(pinfold.decisions)")
    }

    /// Guards: a key that is trusted from now on, though the rule lets it not be known in this way any more.
    @Test("Nothing is learnt in a way that the new rule forbids", arguments: changes.prefix(3))
    func learning(change: Change) throws {
      let certificates = try Certificates.shared()
      let host = "device.local:8443"
      let (fetched, pinfold) = try fetch(
        "https://\(host)/", options: ["--insecure"], from: certificates.selfSigned, change
      ) { port, rule in
        try Settings.pinned(certificates.other.pin, port: 1).with {
          $0.hosts[host] = "{ trust_on_first_use: true, pins: [], verify_chain: false, \(rule) }"
          $0.resolve[host] = port
        }
      }
      #expect(fetched.succeeded == (change.reason == "pin_match"), "\(fetched)")
      #expect(try pinfold.reasons() == [change.reason])
      let list = try Command([Pinfold.binary, "trust", "list", "-c", pinfold.workspace.path("pinfold.json5")])
      #expect(list.output.contains("device.local") == (change.reason == "pin_match"), "\(list)")
    }

    /// Fetches in TLS 1.3, from a server that answers nothing before the rule has changed.
    private func fetch(
      _ url: String, options: [String] = [], from identity: Certificates.Identity, _ change: Change,
      by settings: (_ port: UInt16, _ rule: String) throws -> Settings
    ) throws -> (Command, Pinfold) {
      let server = try Servers.nginx(identity, protocols: "TLSv1.3")
      let isOpen = Gate()
      let held = try Listener { near in
        guard isOpen.wait(), let far = try? Socket.connect(to: server.port) else { return near.shutDown() }
        Tap.join(near, far, Tap.Connection())
      }
      let pinfold = try Pinfold(settings(held.port, "").with { $0.keyLog = "keys" })
      let changed = try settings(held.port, change.rule).with {
        $0.keyLog = "keys"
        $0.version = 2
      }
      let problem = Problem()
      Thread.detachNewThread {
        problem.catch {
          try Wait.untilTrue("both connections of the pair") { held.connectionCount == 2 }
          try pinfold.reload(changed)
          try Wait.untilTrue("the new rules") { try pinfold.metrics().sum("pinfold_policy_version") == 2 }
        }
        isOpen.open()
      }
      let fetched = try Client.curl.fetch(url, proxy: pinfold.port, options: options)
      try problem.rethrow()
      return (fetched, pinfold)
    }

    struct End: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let rule: @Sendable (_ soon: String) -> String
      var isPolicy = false
      var reason = "pins_expired"
    }

    static let ends = [
      End(testDescription: "nothing", rule: { _ in "" }, reason: "pin_match"),
      End(testDescription: "the rule's", rule: { "expires_at: \"\($0)\"" }),
      End(testDescription: "the policy's", rule: { _ in "" }, isPolicy: true),
      End(testDescription: "the policy's, of a rule that is off", rule: { _ in "enabled: false" }, isPolicy: true),
    ]

    /// Guards: a decision that is asked for again only when somebody changed the rules. Time changes them too.
    @Test("An end that comes during the handshake counts", arguments: ends)
    func end(row: End) throws {
      let identity = try Certificates.shared().ecdsa
      let server = try Servers.nginx(identity, protocols: "TLSv1.2")
      let clock = try ShiftedClock()
      let problem = Problem()
      // Nothing is answered before an hour has passed.
      let held = try Listener { near in
        problem.catch { try clock.shift(by: 3600) }
        guard let far = try? Socket.connect(to: server.port) else { return near.shutDown() }
        Tap.join(near, far, Tap.Connection())
      }
      let soon = Date.now.addingTimeInterval(1800).formatted(.iso8601)
      let pinfold = try Pinfold(
        Settings.pinned(identity.pin, port: held.port, rule: row.rule(soon)).with {
          $0.environment = clock.environment
          if row.isPolicy { $0.expiresAt = soon }
        })
      let fetched = try Client.curl.fetch(proxy: pinfold.port)
      try problem.rethrow()
      #expect(fetched.succeeded == (row.reason == "pin_match"), "\(fetched)")
      #expect(try pinfold.reasons() == [row.reason])
      #expect(pinfold.decisions.first?["method"] as? String == "in_band", "\(pinfold.decisions)")
    }

    /// Guards: a tunnel that nobody looks into, though its host was pinned before it opened.
    @Test("A host that is pinned while it is dialled is looked at") func dialling() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      // A listener whose queue is full answers no SYN until somebody is taken out of it.
      let port = try FreePort.next()
      let listener = try #require(try Socket.listen(on: port, backlog: 0))
      var queued: [Socket] = []
      while queued.count < 8, let socket = try Socket.connect(to: port, timeout: 0.3) { queued.append(socket) }
      let unpinned = Settings().with {
        $0.unpinned = "tunnel"
        $0.resolve["api.pinfold.test:443"] = port
        $0.allow = ["127.0.0.0/8"]
      }
      let pinfold = try Pinfold(unpinned)
      let pinned = try Settings.pinned(certificates.other.pin, port: port).with { $0.version = 2 }
      let problem = Problem()
      Thread.detachNewThread {
        problem.catch {
          try Wait.untilTrue("a tunnel that is dialled") { try pinfold.metrics().sum("pinfold_tunnels_active") == 1 }
          try pinfold.reload(pinned)
          try Wait.untilTrue("the new rules") { try pinfold.metrics().sum("pinfold_policy_version") == 2 }
        }
        while let near = listener.accept(timeout: 5) {
          Thread.detachNewThread {
            guard let far = try? Socket.connect(to: server.port) else { return near.shutDown() }
            Tap.join(near, far, Tap.Connection())
          }
        }
      }
      let fetched = try Client.curl.fetch(proxy: pinfold.port)
      try problem.rethrow()
      #expect(!fetched.succeeded, "\(fetched)")
      #expect(try pinfold.reasons() == ["pin_mismatch"])
      #expect(pinfold.decisions.first?["policy"] as? Int == 2, "\(pinfold.decisions)")
      withExtendedLifetime(queued) {}
    }
  }
}

/// Holds threads back until it is opened.
private final class Gate: Sendable {
  private let isOpen = Atomic<Bool>(false)

  func open() { isOpen.store(true, ordering: .releasing) }

  /// Whether it was opened in time.
  func wait() -> Bool {
    (try? Wait.untilTrue("an open gate", seconds: 30) { isOpen.load(ordering: .acquiring) }) != nil
  }
}

/// What went wrong on another thread.
private final class Problem: Sendable {
  private let error = Mutex<(any Error)?>(nil)

  func `catch`(_ body: () throws -> Void) {
    do { try body() } catch { self.error.withLock { $0 = error } }
  }

  func rethrow() throws {
    if let error = error.withLock({ $0 }) { throw error }
  }
}
