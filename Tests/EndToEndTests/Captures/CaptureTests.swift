import Testing

extension Handshakes {
  /// Every captured handshake through the whole program, both sides' bytes as they were. The verdict expected is worked
  /// out from the facts by a table of rules (CaptureVerdict); TLS 1.3 is judged by the key-log lines the client wrote.
  ///
  /// Guards: each check on the way from the sockets to the decision line, for clients and servers that are not installed
  /// here. A capture whose bytes were read in another way than their facts say ends with another reason.
  @Suite struct CaptureTests {
    private static let stage = Result { try stage(CaptureVariant.all, keyLog: true) }
    private static let stageWithoutKeyLog = Result { try stage(CaptureVariant.withoutKeyLog, keyLog: false) }

    private static func stage(_ variants: [CaptureVariant], keyLog: Bool) throws -> CaptureStage {
      try CaptureStage(
        variants.flatMap { $0.rows() }.map { ($0.place, $0.capture, $0.variant.policy, Capture.host) }, keyLog: keyLog)
    }

    /// Plays a row and holds what came out against what its facts call for.
    private func play(_ row: CaptureRow, session: CapturePolicy.Session = .unknown) throws {
      let hasKeyLog = row.variant.policy.tls13 != "probe"
      let stage = try hasKeyLog ? Self.stage.get() : Self.stageWithoutKeyLog.get()
      let place = try stage.place(row.place)
      var policy = place.policy
      policy.session = session
      let expected = CaptureVerdict.called(for: row.capture.facts, under: policy)
      let (result, decision) = try stage.play(row.capture, at: place, piece: row.variant.piece)
      #expect(decision.reason == expected.reason, "\(decision.text)")
      #expect(decision.method == expected.method, "\(decision.text)")
      CaptureExpectation.check(result, of: row.capture, expected, mayProbe: !hasKeyLog)
    }

    @Test("There are 118") func count() { #expect(Capture.all.count == 118) }

    @Test("A pinned leaf", arguments: CaptureVariant.pinned.rows()) func pinned(row: CaptureRow) throws {
      try play(row)
    }

    @Test("Another key is pinned", arguments: CaptureVariant.otherPin.rows()) func otherPin(row: CaptureRow) throws {
      try play(row)
    }

    @Test("The certificate's hash is pinned", arguments: CaptureVariant.certificate.rows())
    func certificate(row: CaptureRow) throws { try play(row) }

    @Test("A device: no chain, no name needed", arguments: CaptureVariant.device.rows()) func device(row: CaptureRow)
      throws
    { try play(row) }

    @Test("A device with another key", arguments: CaptureVariant.strangeDevice.rows())
    func strangeDevice(row: CaptureRow) throws { try play(row) }

    @Test("TLS 1.3 denied", arguments: CaptureVariant.denied.rows()) func denied(row: CaptureRow) throws {
      try play(row)
    }

    @Test("In pieces of 61 bytes", arguments: CaptureVariant.inPieces.rows()) func inPieces(row: CaptureRow) throws {
      try play(row)
    }

    /// Guards: that a probe is no formality. Whoever recorded the genuine server's handshake has what this upstream has.
    @Test(
      "By a probe: recorded TLS 1.3 proves nothing, everything else is judged as before",
      arguments: CaptureVariant.probed.rows())
    func probed(row: CaptureRow) throws { try play(row) }

    @Test("By a probe, with another key pinned", arguments: CaptureVariant.probedOtherPin.rows())
    func probedOtherPin(row: CaptureRow) throws { try play(row) }

    /// Both connections of a pair at one authority: what the first teaches the second needs. Sessions of TLS 1.2 and older
    /// are learnt only where the client used its connection (docs/verification.md).
    @Test("The resumption of a session whose full handshake was allowed", arguments: CaptureVariant.pairs.rows())
    func resumed(row: CaptureRow) throws {
      let first = try Capture.named(try #require(row.capture.facts.pair))
      let stage = try Self.stage.get()
      let (_, decision) = try stage.play(first, at: try stage.place(row.place))
      try #require(decision.reason == "pin_match", "\(decision.text)")
      try play(row, session: first.isTLS13 || first.clientSentData ? .known : .unknown)
    }
  }
}
