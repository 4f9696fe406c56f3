import PinfoldModel
import Testing

@testable import PinfoldTLS

/// What the cache may answer, and for how long.
struct ChainCacheTests {
  private let now = Timestamp(seconds: 1_800_000_000)
  private let host = HostName.name("api.example.com")

  private func after(_ seconds: Int64) -> Timestamp { Timestamp(seconds: now.seconds + seconds) }

  @Test func `The same chain for the same host is the same judgement`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let sent = try root.issue(.init(commonName: "leaf", hosts: [host], now: now)).chain.map { try $0.der() }
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    let first = try verifier.judge(certificates: sent, host: host, now: now)
    #expect(try verifier.judge(certificates: sent, host: host, now: after(3599)) === first)
    #expect(try verifier.judge(certificates: sent, host: host, now: after(3600)) !== first)
    #expect(verifier.cachedCount == 1)
  }

  /// Would catch a peer who fills the memory with leaves whose keys are large.
  @Test func `The judgement on a large leaf is not kept`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let names = (0..<300).map { HostName.name("a-rather-long-name-\($0).example.com") }
    let sent = try root.issue(.init(commonName: "leaf", hosts: [host] + names, now: now)).chain.map { try $0.der() }
    try #require(sent[0].count > LeafMemory.sizeLimit)
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    #expect(try verifier.judge(certificates: sent, host: host, now: now).chainVerified)
    #expect(verifier.cachedCount == 0)
  }

  @Test func `Another host, another order or one more certificate is judged anew`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let leaf = try root.issue(.init(commonName: "leaf", hosts: [host], now: now)).chain[0].der()
    let other = try root.certificate.der()
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    let first = try verifier.judge(certificates: [leaf], host: host, now: now)
    let otherHost = try verifier.judge(certificates: [leaf], host: .name("b.example.com"), now: now)
    #expect(first.nameMatches && !otherHost.nameMatches)
    #expect(try verifier.judge(certificates: [leaf, other], host: host, now: now) !== first)
    let turned = try verifier.judge(certificates: [other, leaf], host: host, now: now)
    #expect(turned.leafKeyDigest == root.certificate.keyDigest)
    #expect(verifier.cachedCount == 4)
  }

  @Test func `A judgement ends with the chain it is about`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    var wish = DemoAuthority.Wish(commonName: "leaf", hosts: [host], now: now)
    wish.notAfter = after(100)
    let sent = try root.issue(wish).chain.map { try $0.der() }
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    let first = try verifier.judge(certificates: sent, host: host, now: now)
    #expect(first.chainVerified && first.validUntil == after(100))
    #expect(try verifier.judge(certificates: sent, host: host, now: after(99)) === first)
    #expect(try !verifier.judge(certificates: sent, host: host, now: after(101)).chainVerified)
  }

  @Test func `A failure is remembered for a minute only, and a clock set back asks again`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    var wish = DemoAuthority.Wish(commonName: "leaf", hosts: [host], now: now)
    wish.notBefore = after(60)
    let sent = try root.issue(wish).chain.map { try $0.der() }
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    let first = try verifier.judge(certificates: sent, host: host, now: now)
    #expect(!first.chainVerified)
    #expect(try verifier.judge(certificates: sent, host: host, now: after(59)) === first)
    let later = try verifier.judge(certificates: sent, host: host, now: after(60))
    #expect(later.chainVerified)
    #expect(try !verifier.judge(certificates: sent, host: host, now: now).chainVerified)
  }

  @Test func `Limits on number and size hold before anything is parsed`() throws {
    let verifier = ChainVerifier(trusting: try TrustStore([]))
    let junk = [UInt8](repeating: 0x30, count: 10)
    #expect(throws: TLSError.tooLarge("33 certificates; at most 32")) {
      try verifier.judge(certificates: Array(repeating: junk, count: 33), host: host, now: now)
    }
    #expect(throws: TLSError.tooLarge("102401 bytes of certificates; at most 102400")) {
      try verifier.judge(certificates: [[UInt8](repeating: 0x30, count: 102_401)], host: host, now: now)
    }
    #expect(throws: TLSError.unreadable("a chain without certificates")) {
      try verifier.judge(certificates: [[UInt8]](), host: host, now: now)
    }
  }

  @Test func `A broken certificate anywhere in the list is an error that names it`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let leaf = try root.issue(.init(commonName: "leaf", hosts: [host], now: now)).chain[0].der()
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    for broken in [[], [0x30], Array(leaf.dropLast()), leaf + [0]] {
      let error = #expect(throws: TLSError.self) {
        try verifier.judge(certificates: [leaf, broken], host: host, now: now)
      }
      #expect(error?.description.hasPrefix("certificate 2 of 2: ") == true)
    }
    #expect(verifier.cachedCount == 0)
  }

  @Test func `The cache is bounded and keeps what is in use`() {
    var cache = BoundedCache<Int, Int>(capacity: 10)
    cache.insert(-1, for: -1)
    for index in 0..<1000 {
      cache.insert(index, for: index)
      #expect(cache.value(for: -1) == -1)
      #expect(cache.count <= 20)
    }
    #expect(cache.value(for: 0) == nil)
    #expect(cache.value(for: 999) == 999)
    cache.remove(999)
    #expect(cache.value(for: 999) == nil)
  }

  @Test func `Many threads may judge at once`() async throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]), capacity: 2)
    var chains: [[[UInt8]]] = []
    for _ in 0..<8 {
      chains.append(try root.issue(.init(commonName: "leaf", hosts: [host], now: now)).chain.map { try $0.der() })
    }
    let verified = try await withThrowingTaskGroup(of: Bool.self) { group in
      for index in 0..<200 {
        let chain = chains[index % chains.count]
        group.addTask {
          let judgement = try verifier.judge(certificates: chain, host: host, now: now)
          return try judgement.chainVerified && judgement.leafKeyDigest == Certificate(der: chain[0]).keyDigest
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(verified == 200)
    #expect(verifier.cachedCount <= 4)
  }
}
