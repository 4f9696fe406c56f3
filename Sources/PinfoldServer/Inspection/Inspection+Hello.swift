import PinfoldLoop
import PinfoldWire

extension Inspection {
  /// Longest pause between the two hellos of a pair. What of Pinfold's own work could lie between them, and be another
  /// thing in one order than in the other, takes microseconds; a tunnel waits half of this on average.
  private static let longestPause = 1_000_000

  /// The one form a ChangeCipherSpec record has (RFC 8446 appendix D.4).
  private static let changeCipherSpec: [UInt8] = [20, 3, 3, 0, 1, 1]

  /// Sends the app's hello, and the probe's on its own connection: which of them goes first is drawn, and so is the time
  /// between them.
  ///
  /// Both go at once or not at all, whichever it is: an upstream that takes in a part of one and waits would see by the
  /// other connection which is which. And neither is read before both are out: an attacker sees by the window what lies
  /// unread (RFC 9293 §3.8.6), and the one that goes first would be told by it.
  @inline(__always)
  mutating func sendHello(_ bytes: [UInt8], beside leg: ProbeLeg?) async throws(Refusal) {
    guard let leg else {
      try await sendUp(bytes)
      sentHello = worker.loop.now
      return
    }
    let isProbeFirst = Bool.random()
    if isProbeFirst { try sendNow(leg) } else { try sendNow(bytes) }
    await worker.loop.pause(for: .nanoseconds(Int.random(in: 0..<Self.longestPause)))
    if isProbeFirst { try sendNow(bytes) } else { try sendNow(leg) }
    leg.goOn()
    sentHello = worker.loop.now
  }

  /// Sends the hello that answers a HelloRetryRequest in the same way, and says how many bytes of the app that were.
  ///
  /// The probe's own second hello is made before either goes out: the time it takes is not to be seen between them.
  mutating func sendSecondHello(_ hello: ClientHello, beside leg: ProbeLeg?) async throws(Refusal) -> Int {
    let bytes = (hello.changeCipherSpec == nil ? [] : Self.changeCipherSpec) + hello.records
    leg?.prepare(hello)
    try await sendHello(bytes, beside: leg)
    return bytes.count
  }

  @inline(__always)
  private func sendUp(_ bytes: [UInt8]) async throws(Refusal) {
    do {
      try await upstream.send(bytes, deadline: deadline, watching: client)
    } catch {
      throw Refusal(upstream: error)
    }
  }

  private func sendNow(_ bytes: [UInt8]) throws(Refusal) {
    let sent: Int
    do {
      sent = try upstream.trySend(bytes.span)
    } catch {
      throw Refusal(upstream: error)
    }
    guard sent == bytes.count else { throw .helloHeldUp }
  }

  private func sendNow(_ leg: ProbeLeg) throws(Refusal) {
    let isSent: Bool
    do {
      isSent = try leg.sendHello()
    } catch {
      throw Refusal(upstream: error)
    }
    guard isSent else { throw .helloHeldUp }
  }
}
