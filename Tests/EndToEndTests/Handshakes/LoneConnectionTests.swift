import Testing

extension Handshakes {
  /// What an attacker on the path could do to have the app's connection to himself, with the probe before or behind it:
  /// then no lot would have to be guessed, and the probe could be left to the genuine server.
  ///
  /// Guards: that nothing he can say himself brings Pinfold to dial a connection without its pair, and that what a lone
  /// probe found is not taken for what it was not made for.
  @Suite struct LoneConnectionTests {
    @Test("A made-up resumption and a stalled probe leave no lone connection to intercept") func resumption() throws {
      let stage = try StagedPath(versions: "TLSv1.2 TLSv1.3") { dial in
        switch dial.number {
        case 1, 2: .resumed
        case 3: .silent
        case 4: .genuine
        default: .evil
        }
      }
      let fetched = try Client.curl.fetch(proxy: stage.pinfold.port)
      #expect(!fetched.succeeded && !stage.isRead)
      #expect(try stage.pinfold.reasons() == ["probe_failed"], "\(stage.pinfold.decisions)")
    }

    /// The older server may be any on which the key is used, and honest: no signature says for which address it is.
    @Test func `who knows an older server of the key's owner meets a lone connection once, and is refused`() throws {
      let stage = try StagedPath(versions: "TLSv1.3") { dial in
        switch dial.number {
        case 1, 2, 6, 7: .older
        case 3: .evil
        default: .genuine
        }
      }
      #expect(try Client.curl.fetch(proxy: stage.pinfold.port).succeeded)
      #expect(try !Client.curl.fetch(proxy: stage.pinfold.port).succeeded)
      #expect(!stage.isRead && stage.connections == 3)
      // From here on each connection has another one beside it, whatever was answered last.
      for connections in [5, 7, 9] {
        #expect(try Client.curl.fetch(proxy: stage.pinfold.port).succeeded)
        #expect(stage.connections == connections)
      }
      let reasons = ["pin_match", "probe_failed", "pin_match", "pin_match", "pin_match"]
      #expect(try stage.pinfold.reasons(5) == reasons, "\(stage.pinfold.decisions)")
    }

    @Test func `where the key's owner speaks TLS 1.2 only, nobody else's TLS 1.3 is let through behind him`() throws {
      let stage = try StagedPath(versions: "TLSv1.2") { $0.number == 3 ? .evil : .genuine }
      #expect(try Client.curl.fetch(proxy: stage.pinfold.port).succeeded)
      #expect(try !Client.curl.fetch(proxy: stage.pinfold.port).succeeded)
      #expect(!stage.isRead)
      #expect(try stage.pinfold.reasons(2) == ["pin_match", "probe_failed"], "\(stage.pinfold.decisions)")
    }

    /// The second client's first connection is answered only once its pair has been dialled too.
    @Test("A TLS 1.2 answer to who asked for no more does not leave the next client without a pair") func capped()
      throws
    {
      let stage = try StagedPath(versions: "TLSv1.2 TLSv1.3") { dial in
        guard dial.number == 2 else { return .genuine }
        let isPaired: Void? = try? Wait.untilTrue("the other connection of the pair", seconds: 3) {
          dial.count() >= 3
        }
        return isPaired == nil ? .silent : .genuine
      }
      #expect(try Client.curl.fetch(proxy: stage.pinfold.port, options: ["--tls-max", "1.2"]).succeeded)
      let second = try Client.curl.fetch(proxy: stage.pinfold.port)
      #expect(second.succeeded, "\(second)")
      #expect(try stage.pinfold.reasons(2) == ["pin_match", "pin_match"], "\(stage.pinfold.decisions)")
    }
  }
}
