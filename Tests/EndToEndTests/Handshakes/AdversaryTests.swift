import Foundation
import Testing

extension Handshakes {
  /// The attacker pins exist for, on the path, with a certificate that the clients trust. What docs/threat-model.md
  /// claims of him is counted here: how many of his attempts are caught, and that what is caught is not relayed.
  ///
  /// A caught share below the bounds would mean that he can tell twin and app apart; a request of a refused tunnel in
  /// his server's log would mean that the refusal came too late.
  @Suite struct AdversaryTests {
    static let tunnels = 200
    /// 200 fair draws, five standard deviations to each side: a right implementation leaves them once in 2.6 million
    /// runs, and one that gives the attacker three in four is outside in all but one of a hundred.
    static let half = 65...135

    private struct Outcome {
      var refused: Set<Int> = []
      var byEvil: Set<Int> = []
      var byGenuine: Set<Int> = []
      /// The tunnels whose request the attacker's server was sent.
      var readByEvil: Set<Int> = []
      var interceptions = 0
      var connections = 0
      var unread = 0
      var reasons: [String: Int] = [:]
      var text = ""
    }

    private func attack(
      _ plan: Interceptor.Plan, tunnels: Int = Self.tunnels, rule: String = "", sessions: Bool = false,
      keyLog: Bool = false, genuineVersions: String = "TLSv1.3", change: (inout Settings) -> Void = { _ in }
    ) throws -> Outcome {
      let certificates = try Certificates.shared()
      let genuine = try Servers.nginx(certificates.ecdsa, protocols: genuineVersions)
      let workspace = try Workspace("evil")
      let evil = try Servers.nginx(
        certificates.other, protocols: "TLSv1.3", options: "access_log \(workspace.path("requests"));")
      let interceptor = try Interceptor(plan, genuine: genuine.port, evil: evil.port)
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: interceptor.port, rule: rule).with {
        if keyLog { $0.keyLog = "keys" }
        change(&$0)
      }
      let pinfold = try Pinfold(settings)
      var arguments = [
        "python3", "\(Client.scripts)/tunnels.py", "\(pinfold.port)", certificates.rootFile, "\(tunnels)",
      ]
      if sessions { arguments += ["--sessions-of", "\(genuine.port)"] }
      if keyLog { arguments += ["--key-log", pinfold.workspace.path("keys")] }
      let client = try Command(arguments, seconds: 55)
      guard client.succeeded else { throw HarnessError("\(client)") }
      var outcome = Outcome()
      for line in client.output.split(separator: "\n") {
        let words = line.split(separator: " ")
        guard words.count == 2, let number = Int(words[0]) else { throw HarnessError("\(line)") }
        switch words[1] {
        case "refused": outcome.refused.insert(number)
        case "other": outcome.byEvil.insert(number)
        default: outcome.byGenuine.insert(number)
        }
      }
      for line in workspace.read("requests").split(separator: "\n") {
        // `… "GET /17 HTTP/1.1" …`, and a line without a request for a connection that never sent one.
        guard let start = line.range(of: "GET /"), let number = Int(line[start.upperBound...].prefix { $0.isNumber })
        else { continue }
        outcome.readByEvil.insert(number)
      }
      outcome.interceptions = interceptor.interceptions
      outcome.connections = interceptor.connections
      outcome.unread = interceptor.unread
      outcome.reasons = Dictionary(grouping: try pinfold.reasons(tunnels)) { $0 }.mapValues(\.count)
      outcome.text =
        "refused \(outcome.refused.count), by evil \(outcome.byEvil.count), by genuine \(outcome.byGenuine.count), "
        + "intercepted \(outcome.interceptions) of \(outcome.connections), \(outcome.reasons)"
      print("[\(plan.rawValue)\(rule.isEmpty ? "" : ", \(rule)")] \(outcome.text)")
      return outcome
    }

    /// What holds whatever the attacker does.
    private func expectNothingCaughtIsRelayed(_ outcome: Outcome) {
      #expect(outcome.readByEvil.isDisjoint(with: outcome.refused), "a refused tunnel's request reached the attacker")
      #expect(outcome.readByEvil == outcome.byEvil)
    }

    @Test("An attacker who intercepts every connection is caught every time") func every() throws {
      let outcome = try attack(.everyConnection)
      expectNothingCaughtIsRelayed(outcome)
      #expect(outcome.refused.count == Self.tunnels, "\(outcome.text)")
      #expect(outcome.reasons == ["pin_mismatch": Self.tunnels], "\(outcome.text)")
      #expect(outcome.interceptions >= 2 * Self.tunnels, "both connections of a pair are his")
    }

    @Test(
      "An attacker who intercepts one connection of a pair is caught on half of all tries, however he chooses",
      arguments: [Interceptor.Plan.firstDialled, .secondDialled, .firstHello, .atRandom])
    func one(plan: Interceptor.Plan) throws {
      let outcome = try attack(plan)
      expectNothingCaughtIsRelayed(outcome)
      #expect(Self.half.contains(outcome.refused.count), "\(outcome.text)")
      // Each tunnel was attacked: who was not caught was served by him.
      #expect(outcome.refused.count + outcome.byEvil.count == Self.tunnels, "\(outcome.text)")
      #expect(outcome.reasons["pin_mismatch"] == outcome.refused.count, "\(outcome.text)")
      #expect(outcome.interceptions * 2 == outcome.connections, "\(outcome.text)")
    }

    /// The limit of the twin hello, and what closes it.
    @Test("An attacker who finds the app's hello by its session is never caught by the probe, always by psk_declined")
    func resumable() throws {
      let lax = try attack(.resumable, tunnels: 50, sessions: true) { $0.pskDeclined = "probe" }
      expectNothingCaughtIsRelayed(lax)
      #expect(lax.byEvil.count == 50, "better than documented: \(lax.text)")

      let strict = try attack(.resumable, sessions: true) { $0.pskDeclined = "refuse" }
      expectNothingCaughtIsRelayed(strict)
      #expect(strict.reasons == ["psk_declined": Self.tunnels], "\(strict.text)")
      #expect(strict.refused.count == Self.tunnels, "\(strict.text)")
    }

    /// Guards: a probe that is done stays until the app's connection is answered. If it left, its end would tell him.
    @Test("An attacker who waits for the probe to leave before he intercepts the other connection") func patient()
      throws
    {
      let outcome = try attack(.patient, tunnels: 60)
      expectNothingCaughtIsRelayed(outcome)
      #expect(outcome.byEvil.count + outcome.byGenuine.count + outcome.refused.count == 60, "\(outcome.text)")
      #expect(outcome.byEvil.isEmpty, "\(outcome.text)")
    }

    /// Guards: that the twin is sent again as it was, as the app's hello is. If it were made anew, the other one would be
    /// the app's.
    @Test("An attacker who has a pair drawn anew does not find the app's hello by its coming again") func repeated()
      throws
    {
      let outcome = try attack(.repeated, tunnels: 30)
      expectNothingCaughtIsRelayed(outcome)
      #expect(outcome.byEvil.isEmpty, "\(outcome.text)")
    }

    /// Guards: that both connections of a pair that is given up end alike.
    @Test("An attacker who has a pair drawn anew does not find the app's hello by how the connections ended")
    func farewell() throws {
      let outcome = try attack(.farewell, tunnels: 40)
      expectNothingCaughtIsRelayed(outcome)
      // He guesses: fewer than six of forty catches would come once in two million runs.
      #expect(outcome.refused.count >= 6, "\(outcome.text)")
    }

    /// Guards: that a pair is drawn anew whichever of its connections stays silent. Were it for the app's alone, or for the
    /// probe's, one byte would tell him which is which, and he would be caught never.
    @Test("An attacker who answers one connection with a byte and waits does not learn which it is")
    func teasing() throws {
      let outcome = try attack(.teasing, tunnels: 40)
      expectNothingCaughtIsRelayed(outcome)
      #expect(outcome.connections == 4 * 40, "each tunnel has two pairs: \(outcome.text)")
      #expect(outcome.refused.count >= 6, "\(outcome.text)")
      #expect(outcome.reasons["pin_mismatch"] == outcome.refused.count, "\(outcome.text)")
    }

    /// Guards: an app's connection that nobody reads while the probe's is read.
    @Test("An attacker who holds a part of each flight back finds nothing unread on either connection") func weighing()
      throws
    {
      let outcome = try attack(.weighing, tunnels: 16)
      #expect(outcome.byGenuine.count == 16, "\(outcome.text)")
      #expect(outcome.unread == 0, "\(outcome.text)")
    }

    /// Guards: an app's connection that nobody reads while its key-log line is waited for. It would be
    /// found unread at both looks on half of all tunnels; a busy machine may leave one or the other alone for so long.
    @Test("A key log without lines leaves nothing unread either") func weighingAtOnce() throws {
      let outcome = try attack(.weighingAtOnce, tunnels: 40) { $0.keyLog = "keys" }
      #expect(outcome.byGenuine.count == 40, "\(outcome.text)")
      #expect(outcome.unread <= 8, "\(outcome.unread) of 40, \(outcome.text)")
    }

    /// Guards: a probe that was answered in TLS 1.2, by the genuine server, vouching for an app's connection in TLS 1.3.
    @Test("What a probe saw in TLS 1.2 vouches for no connection in TLS 1.3") func versions() throws {
      let outcome = try attack(.halfOfAll, tunnels: 40, genuineVersions: "TLSv1.2")
      expectNothingCaughtIsRelayed(outcome)
      #expect(outcome.byEvil.isEmpty, "\(outcome.text)")
    }

    @Test("By the key log an intercepted connection is caught every time, and no other is refused") func keyLog() throws
    {
      let outcome = try attack(.halfOfAll, rule: #"tls13: "key_log""#, keyLog: true)
      expectNothingCaughtIsRelayed(outcome)
      #expect(outcome.connections == Self.tunnels, "no probe was needed")
      #expect(Self.half.contains(outcome.interceptions), "\(outcome.text)")
      #expect(outcome.refused.count == outcome.interceptions, "\(outcome.text)")
      #expect(outcome.byGenuine.count == Self.tunnels - outcome.interceptions, "\(outcome.text)")
      #expect(outcome.readByEvil.isEmpty)
      #expect(outcome.reasons["pin_mismatch"] == outcome.interceptions, "\(outcome.text)")
    }
  }
}
