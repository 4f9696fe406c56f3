import Foundation
import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldTLS

/// Twins against a played server: the hybrid group, and delegated credentials (RFC 9345) right and wrong.
@Suite("twins and played servers") struct PlayedServerTests {
  private func play(_ server: PlayedServer, capture: String = "tls13-firefox-nginx35-mlkem") throws -> TwinStep {
    let app = try Capture.named(capture).hello()
    let session = try TwinSession(of: app, now: Timestamp(seconds: Int64(Date().timeIntervalSince1970)))
    _ = session.start()
    _ = session.judge()
    return session.receive(try server.answer(session.hello.hello))
  }

  private func expectProven(_ step: TwinStep, delegated: Bool, group: UInt16 = 0x11ec) throws {
    guard case .finished(let result, _) = step else {
      Issue.record("\(step)")
      return
    }
    #expect(result.serverHello.keyShareGroup == group)
    #expect(result.flight?.usesDelegatedCredential == delegated)
    #expect(result.certificates == [try PlayedServer.file("leaf.der")])
  }

  private func expectRefused(_ step: TwinStep, _ reason: Reason) {
    guard case .failed(.refused(let refusal), _) = step else {
      Issue.record("\(step)")
      return
    }
    #expect(refusal.reason == reason, "\(refusal.detail)")
  }

  @Test(
    "X25519MLKEM768 is agreed on",
    arguments: [
      "tls13-firefox-nginx35-mlkem", "tls13-chromium-nginx", "tls13-go-nginx-1", "tls13-curl35-nginx35-mlkem",
    ])
  func hybrid(_ capture: String) throws {
    try expectProven(try play(PlayedServer(), capture: capture), delegated: false)
  }

  @Test("a server that cannot have read our share opens nothing") func wrongSecret() throws {
    expectRefused(try play(PlayedServer(hasWrongSecret: true)), .keyNotProven)
  }

  @Test("a signature by a key that is not the leaf's is not proven") func wrongSigner() throws {
    expectRefused(try play(PlayedServer(signer: "other")), .keyNotProven)
  }

  @Test("a delegated credential is taken, and what counts is still the leaf") func delegated() throws {
    let credential = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "leaf")
    try expectProven(try play(PlayedServer(signer: "other", credential: credential)), delegated: true)
    let week = try PlayedServer.credential(for: "other", seconds: 7 * 24 * 3600 - 60, issuer: "leaf")
    try expectProven(try play(PlayedServer(signer: "other", credential: week)), delegated: true)
  }

  @Test(
    "a credential that has ended, or would last too long, is refused", arguments: [-1, 0, 7 * 24 * 3600 + 60, 1 << 40])
  func validity(_ seconds: Int64) throws {
    let credential = try PlayedServer.credential(for: "other", seconds: seconds, issuer: "leaf")
    expectRefused(try play(PlayedServer(signer: "other", credential: credential)), .keyNotProven)
  }

  @Test("a credential signed by itself, or for another certificate, is refused") func foreignIssuer() throws {
    let own = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "other")
    expectRefused(try play(PlayedServer(signer: "other", credential: own)), .keyNotProven)
    let elsewhere = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "leaf", leaf: "plain")
    expectRefused(try play(PlayedServer(signer: "other", credential: elsewhere)), .keyNotProven)
  }

  @Test("with a credential shown, the leaf's own signature does not count") func wrongKey() throws {
    let credential = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "leaf")
    expectRefused(try play(PlayedServer(signer: "leaf", credential: credential)), .keyNotProven)
  }

  @Test("a certificate without the delegation extension may not delegate") func mayNotDelegate() throws {
    let credential = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "plain", leaf: "plain")
    expectRefused(
      try play(PlayedServer(certificate: "plain", signer: "other", credential: credential)), .keyNotProven)
  }

  @Test("a credential for another scheme than the one used is refused") func otherScheme() throws {
    let credential = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "leaf", scheme: 0x0503)
    expectRefused(try play(PlayedServer(signer: "other", credential: credential)), .keyNotProven)
  }

  @Test("a credential nobody asked for is malformed") func notOffered() throws {
    let credential = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "leaf")
    expectRefused(
      try play(PlayedServer(signer: "other", credential: credential), capture: "tls13-curl-nginx"),
      .malformedHandshake)
  }

  @Test("no prefix of a credential, and none with a byte behind it, is read") func cuts() throws {
    let credential = try PlayedServer.credential(for: "other", seconds: 3600, issuer: "leaf")
    #expect(DelegatedCredential(credential) != nil)
    for count in 0..<credential.count { #expect(DelegatedCredential(Array(credential.prefix(count))) == nil) }
    #expect(DelegatedCredential(credential + [0]) == nil)
  }

  /// Would catch a twin that shows, by the time that keys and signatures take or by what it says of them, that it is one.
  @Test("an answer is held, right or forged, until it may be judged", arguments: [false, true])
  func held(isForged: Bool) throws {
    let app = try Capture.named("tls13-firefox-nginx35-mlkem").hello()
    let session = try TwinSession(of: app, now: Timestamp(seconds: Int64(Date().timeIntervalSince1970)))
    _ = session.start()
    #expect(!session.isAnswered)
    var answer = try PlayedServer().answer(session.hello.hello)
    if isForged { answer[answer.count - 1] ^= 1 }
    for byte in answer {
      guard case .needMore = session.receive([byte]) else {
        Issue.record("judged too early")
        return
      }
    }
    #expect(session.isAnswered && !session.isAnsweredOlder)
    let step = session.judge()
    if isForged { expectRefused(step, .keyNotProven) } else { try expectProven(step, delegated: false) }
  }

  @Test("byte by byte the same comes out, and nothing before the last one") func everySplit() throws {
    let app = try Capture.named("tls13-firefox-nginx35-mlkem").hello()
    let session = try TwinSession(of: app, now: Timestamp(seconds: Int64(Date().timeIntervalSince1970)))
    _ = session.start()
    _ = session.judge()
    let answer = try PlayedServer().answer(session.hello.hello)
    for byte in answer.dropLast() {
      guard case .needMore = session.receive([byte]) else {
        Issue.record("an answer before the end")
        return
      }
    }
    try expectProven(session.receive(Array(answer.suffix(1))), delegated: false)
    guard case .failed(.ended, let farewell) = session.receive([0]) else {
      Issue.record("went on after its end")
      return
    }
    #expect(farewell.isEmpty)
  }

  @Test("a changed byte anywhere, in the clear or not, is never judged well") func changedBytes() throws {
    let app = try Capture.named("tls13-openssl-aes128").hello()
    let length = try PlayedServer().answer(app).count
    // Each position needs a handshake of its own, so every eleventh is tried; all of the ServerHello's kinds are met.
    for index in stride(from: 0, to: length, by: 11) {
      let session = try TwinSession(of: app, now: Timestamp(seconds: Int64(Date().timeIntervalSince1970)))
      _ = session.start()
      _ = session.judge()
      var answer = try PlayedServer().answer(session.hello.hello)
      guard index < answer.count else { continue }
      answer[index] ^= 0x04
      if case .finished = session.receive(answer) { Issue.record("byte \(index) may be changed") }
    }
  }

  @Test("a connection that ends inside the flight is a failure, with a clean leave") func earlyEnd() throws {
    let app = try Capture.named("tls13-openssl-aes128").hello()
    let session = try TwinSession(of: app, now: TwinHelloTests.now)
    _ = session.start()
    _ = session.judge()
    let answer = try PlayedServer().answer(session.hello.hello)
    guard case .needMore = session.receive(Array(answer.dropLast(5))) else {
      Issue.record("an answer before the end")
      return
    }
    guard case .failed(.ended, let farewell) = session.receiveEnd() else {
      Issue.record("not a failure")
      return
    }
    // ChangeCipherSpec, then two records of two bytes, a type and a tag.
    #expect(farewell.count == 6 + 2 * (5 + 2 + 1 + 16) && Array(farewell.prefix(6)) == [20, 3, 3, 0, 1, 1])
  }
}
