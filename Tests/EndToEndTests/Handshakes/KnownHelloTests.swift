import Synchronization
import Testing

extension Handshakes {
  /// An attacker who finds out which of the two hellos of a pair is the app's, by answers that take no key, and then has
  /// another pair with the same hellos drawn.
  ///
  /// Guards: that whatever is treated differently on the two connections is the end of pairs for this tunnel.
  @Suite struct KnownHelloTests {
    /// What the attacker has seen of one tunnel, by the randoms of the hellos.
    private final class Notes: Sendable {
      private struct Seen {
        var connections = 0
        var randoms: [[UInt8]] = []
        var strangers = 0
      }
      private let seen = Mutex(Seen())

      /// Forgets everything for the next tunnel.
      func begin() { seen.withLock { $0 = Seen() } }

      /// The place of a hello's connection in the tunnel, which hello of the first pair it has, 0 or 1, and, for one that is
      /// in no pair, how many of those there were.
      func note(_ random: [UInt8]) -> (place: Int, known: Int?, strangers: Int) {
        seen.withLock { seen in
          seen.connections += 1
          if seen.randoms.count < 2 { seen.randoms.append(random) }
          let known = seen.randoms.firstIndex(of: random)
          if known == nil { seen.strangers += 1 }
          return (seen.connections, known, seen.strangers)
        }
      }
    }

    @Test(
      "He resumes a made-up session on one connection and keeps the other waiting, to see which of them comes again",
      arguments: ["probe", "refuse"])
    func resumes(resumption: String) throws {
      let notes = Notes()
      let path = try StagedPath(versions: "TLSv1.2 TLSv1.3", change: { $0.resumption = resumption }) { dial in
        switch notes.note(dial.random) {
        case (1, _, _): .resumed
        case (2, _, _): .silent
        // OpenSSL's own hello: then the first was the app's. The first one again: then it was the twin's.
        case (_, nil, _), (_, 0, _): .genuine
        default: .evil
        }
      }
      for _ in 0..<8 {
        notes.begin()
        #expect(try !Client.curl.fetch(proxy: path.pinfold.port).succeeded)
      }
      #expect(!path.isRead)
      let reasons = Set(try path.pinfold.reasons(8))
      // Where the first was the app's the genuine server vouches for its key, and the client ends a made-up handshake.
      #expect(reasons.isSubset(of: ["probe_failed", "pin_match", "resumption_unverified"]), "\(reasons)")
    }

    @Test("He keeps the probes of a made-up resumption waiting until another pair is drawn") func stallsProbes() throws
    {
      let notes = Notes()
      let path = try StagedPath(versions: "TLSv1.2 TLSv1.3") { dial in
        switch notes.note(dial.random) {
        case (1, _, _): .resumed
        case (2, _, _): .silent
        case (_, nil, let strangers): strangers < 3 ? .silent : .genuine
        case (_, 0, _): .evil
        default: .genuine
        }
      }
      for _ in 0..<6 {
        notes.begin()
        #expect(try !Client.curl.fetch(proxy: path.pinfold.port, options: ["--max-time", "9"]).succeeded)
      }
      #expect(!path.isRead)
    }

    /// What ends the app's connection for Pinfold has to end the probe's as well, whether its handshake is over or not.
    @Test(
      "He answers one connection, ends it, and looks whether a pair is drawn anew",
      arguments: [StagedPath.Fate.flightAndEnd, .retryAndEnd])
    func endsOne(answer: StagedPath.Fate) throws {
      let path = try StagedPath(versions: "TLSv1.3") { $0.number.isMultiple(of: 2) ? .silent : answer }
      for _ in 0..<6 { #expect(try !Client.curl.fetch(proxy: path.pinfold.port).succeeded) }
      #expect(path.connections == 12)
      let reasons = Set(try path.pinfold.reasons(6))
      #expect(reasons.isSubset(of: ["probe_failed", "upstream_unreachable"]), "\(reasons)")
    }

    @Test("He forges a flight, and looks whether anybody verifies it before the other connection is answered")
    func forges() throws {
      let path = try StagedPath(versions: "TLSv1.3") { $0.number.isMultiple(of: 2) ? .silent : .forgedFlight }
      var before = 0
      for _ in 0..<5 {
        #expect(try !Client.curl.fetch(proxy: path.pinfold.port, options: ["--max-time", "2"]).succeeded)
        // Silence on one of them has pairs drawn anew, whichever it is, and nothing else ends the tunnel.
        #expect(path.connections >= before + 4)
        before = path.connections
      }
    }

    @Test("He sends more behind a whole flight, and looks by the window whether anybody reads it") func weighs() throws
    {
      let path = try StagedPath(versions: "TLSv1.3") { $0.number.isMultiple(of: 2) ? .silent : .flood }
      for _ in 0..<6 {
        #expect(try !Client.curl.fetch(proxy: path.pinfold.port, options: ["--max-time", "4"]).succeeded)
      }
      // A busy machine reads late now and then; what is left to lie does so on half of a tunnel's first four pairs.
      #expect(path.floods >= 6 && path.unread * 5 <= path.floods, "\(path.unread) of \(path.floods) unread")
    }

    @Test(
      "He has pairs given up until a lone probe finds a key's owner who speaks TLS 1.2, and answers the app in TLS 1.3")
    func retriesAlone() throws {
      let path = try StagedPath(versions: "TLSv1.2") { dial in
        switch dial.number {
        case 1...8: dial.number.isMultiple(of: 2) ? .silent : .retry
        case 9: .genuine
        default: .evil
        }
      }
      #expect(try !Client.curl.fetch(proxy: path.pinfold.port).succeeded)
      #expect(!path.isRead)
      #expect(try path.pinfold.reasons() == ["probe_failed"], "\(path.pinfold.decisions)")
    }

    @Test("A shared probe that the key's owner answers in TLS 1.2 vouches for nobody's TLS 1.3") func shared() throws {
      let path = try StagedPath(versions: "TLSv1.2", change: { $0.probeReuse = 60 }) {
        $0.number == 1 ? .evil : .genuine
      }
      #expect(try !Client.curl.fetch(proxy: path.pinfold.port).succeeded)
      #expect(!path.isRead)
      #expect(try path.pinfold.reasons() == ["probe_failed"], "\(path.pinfold.decisions)")
      // The outcome is not kept: what one connection was answered does not refuse the others for a minute.
      #expect(try Client.curl.fetch(proxy: path.pinfold.port).succeeded)
    }
  }
}
