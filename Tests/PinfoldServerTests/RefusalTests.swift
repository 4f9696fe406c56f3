import PinfoldLoop
import PinfoldModel
import PinfoldTLS
import Testing

@testable import PinfoldServer

/// Would catch an error path that ends in an allow.
@Suite struct RefusalTests {
  @Test("No reason makes a refusal that allows", arguments: Reason.allCases)
  func reasonNeverAllows(reason: Reason) {
    #expect(!Refusal(reason).verdict.allows)
    #expect(!Refusal(Verdict(reason, method: .inBand)).verdict.allows)
    #expect(Refusal(reason).verdict.reason == (reason.allows ? .internalError : reason))
  }

  private static let errors: [IOError] = [
    .timedOut, .cancelled, .closed, .reset, .hungUp, .refused, .unreachable, .descriptorsExhausted, .addressInUse,
    .system(5),
  ]

  @Test("No error of a socket makes a refusal that allows", arguments: errors)
  func ioErrorNeverAllows(error: IOError) {
    #expect(!Refusal(client: error).verdict.allows)
    #expect(!Refusal(upstream: error).verdict.allows)
  }

  @Test("An upstream that stalls is a time-out, one that hangs up is unreachable")
  func upstreamErrorsHaveTheirReason() {
    #expect(Refusal(upstream: .timedOut).verdict.reason == .handshakeTimeout)
    #expect(Refusal(upstream: .reset).verdict.reason == .upstreamUnreachable)
    #expect(Refusal(upstream: .descriptorsExhausted).verdict.reason == .limitReached)
  }

  @Test("Certificates that cannot be read are a malformed handshake; OpenSSL's own trouble is ours")
  func certificateErrorsHaveTheirReason() {
    #expect(Refusal(.unreadable("x"), method: .inBand).verdict.reason == .malformedHandshake)
    #expect(Refusal(.tooLarge("x"), method: .inBand).verdict.reason == .malformedHandshake)
    #expect(Refusal(.failed(call: "x", detail: "y"), method: .probe).verdict.reason == .internalError)
  }
}
