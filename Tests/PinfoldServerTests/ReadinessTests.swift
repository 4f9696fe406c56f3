import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldServer

@Suite struct ReadinessTests {
  private static let now = Timestamp(seconds: 1_000_000)

  private static func snapshot(expiring seconds: Int64) -> PolicySnapshot {
    let document = PolicyDocument(
      version: 3, issuedAt: Timestamp(seconds: 0), expiresAt: Timestamp(seconds: now.seconds + seconds), table: .empty)
    return PolicySnapshot(.document(document), local: LocalPolicy())
  }

  @Test("A policy in force is ready") func inForce() {
    #expect(Readiness(Self.snapshot(expiring: 1), at: Self.now, isDraining: false) == .ready)
  }

  @Test("A policy is not ready any more in the second it expires") func expired() {
    let readiness = Readiness(Self.snapshot(expiring: 0), at: Self.now, isDraining: false)
    #expect(readiness.word == "not_ready")
    #expect(readiness.detail?.contains("expired") == true)
  }

  @Test("Bundles of which none was acceptable are not ready") func unavailable() {
    let snapshot = PolicySnapshot(.unavailable, local: LocalPolicy())
    #expect(Readiness(snapshot, at: Self.now, isDraining: false).word == "not_ready")
  }

  @Test("A configuration without bundles decides by itself and is ready") func notConfigured() {
    let snapshot = PolicySnapshot(.notConfigured, local: LocalPolicy())
    #expect(Readiness(snapshot, at: Self.now, isDraining: false) == .ready)
  }

  @Test("Draining is never ready, whatever the policy") func draining() {
    #expect(Readiness(Self.snapshot(expiring: 1), at: Self.now, isDraining: true) == .draining)
  }
}
