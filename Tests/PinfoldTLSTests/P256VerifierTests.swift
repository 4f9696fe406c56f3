import PinfoldModel
import Testing

@testable import PinfoldTLS

/// The verifier with a table against EVP: it may never say yes where EVP says no.
struct P256VerifierTests {
  private static let order: [UInt8] =
    Hex.decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") ?? []

  private func signature(_ r: [UInt8], _ s: [UInt8]) -> [UInt8] {
    func number(_ digits: [UInt8]) -> [UInt8] {
      var digits = Array(digits.drop { $0 == 0 })
      if digits.isEmpty || digits[0] >= 0x80 { digits.insert(0, at: 0) }
      return [2, UInt8(digits.count)] + digits
    }
    let body = number(r) + number(s)
    return [0x30, UInt8(body.count)] + body
  }

  private func inverse(_ bytes: [UInt8]) -> [UInt8]? {
    Scalar(bytes).flatMap { ScalarInverse.of($0) }?.digits
  }

  private func plus(_ bytes: [UInt8], _ step: Int) -> [UInt8] {
    var result = bytes
    var carry = step
    for index in result.indices.reversed() {
      let sum = Int(result[index]) + carry
      result[index] = UInt8(truncatingIfNeeded: sum)
      carry = sum >> 8
    }
    return result
  }

  @Test(arguments: 0..<4)
  func `It agrees with EVP on thousands of good and corrupted signatures`(_ round: Int) throws {
    let signer = try SigningTool("P-256")
    let key = try LeafKey(subjectPublicKeyInfo: signer.publicKey)
    let verifier = try #require(P256Verifier(key))
    let slow = try #require(SignatureCheck(key, SignatureMethod(hash: .sha256, padding: .none)))
    var random = SystemRandomNumberGenerator()
    var accepted = 0
    for index in 0..<6 {
      let content = (0..<100).map { _ in UInt8.random(in: 0...255, using: &random) }
      let good = try signer.sign(content, 0x0403)
      let hash = try Digest.sha256.hash(content)
      #expect(verifier.accepts(good, hash: hash) && slow.verifies(good, over: content))
      accepted += 1
      for trial in 0..<200 {
        var changed = good
        var changedContent = content
        switch trial % 4 {
        case 0: changed[Int.random(in: 0..<changed.count)] ^= 1 << UInt8.random(in: 0..<8)
        case 1: changedContent[Int.random(in: 0..<content.count)] ^= 1 << UInt8.random(in: 0..<8)
        case 2: changed = signature((0..<32).map { _ in UInt8.random(in: 0...255) }, Array(good.suffix(32)))
        default: changed.removeLast(Int.random(in: 1..<changed.count))
        }
        let answer = verifier.accepts(changed, hash: try Digest.sha256.hash(changedContent))
        #expect(answer == slow.verifies(changed, over: changedContent), "round \(round) \(index) \(trial)")
      }
    }
    #expect(accepted == 6)
  }

  @Test func `Numbers at the edges are a no, as they are for EVP`() throws {
    let signer = try SigningTool("P-256")
    let key = try LeafKey(subjectPublicKeyInfo: signer.publicKey)
    let verifier = try #require(P256Verifier(key))
    let slow = try #require(SignatureCheck(key, SignatureMethod(hash: .sha256, padding: .none)))
    let content: [UInt8] = [1, 2, 3]
    let good = try signer.sign(content, 0x0403)
    let numbers = try #require(P256Verifier.numbers(good))
    let (r, s) = (numbers.r.digits, numbers.s.digits)
    let zero = [UInt8](repeating: 0, count: 32)
    let all = [UInt8](repeating: 0xff, count: 32)
    let edges = [zero, plus(zero, 1), plus(Self.order, -1), Self.order, plus(Self.order, 1), all]
    let hash = try Digest.sha256.hash(content)
    for edge in edges {
      for (first, second) in [(edge, s), (r, edge), (edge, edge)] {
        let odd = signature(first, second)
        #expect(!verifier.accepts(odd, hash: hash) && !slow.verifies(odd, over: content))
      }
    }
    // The other root of s is as good a signature: both say so.
    var negative = [UInt8](repeating: 0, count: 32)
    var borrow = 0
    for index in (0..<32).reversed() {
      let difference = Int(Self.order[index]) - Int(s[index]) - borrow
      negative[index] = UInt8(truncatingIfNeeded: difference)
      borrow = difference < 0 ? 1 : 0
    }
    let mirrored = signature(r, negative)
    #expect(verifier.accepts(mirrored, hash: hash) && slow.verifies(mirrored, over: content))
  }

  @Test func `A signature written in another way than DER's is a no`() throws {
    let signer = try SigningTool("P-256")
    let verifier = try #require(P256Verifier(LeafKey(subjectPublicKeyInfo: signer.publicKey)))
    let good = try signer.sign([1], 0x0403)
    let hash = try Digest.sha256.hash([1])
    #expect(verifier.accepts(good, hash: hash))
    let length = Int(good[1])
    var padded = good
    padded.insert(0, at: 4)
    padded[1] += 1
    padded[3] += 1
    let long = [0x30, 0x81, UInt8(length)] + good.dropFirst(2)
    for odd in [padded, long, good + [0], Array(good.dropFirst()), [], [0x30, 0]] {
      #expect(!verifier.accepts(odd, hash: hash))
    }
  }

  @Test func `Longer hashes are cut and shorter ones taken whole, as EVP does`() throws {
    let signer = try SigningTool("P-256")
    let verifier = try #require(P256Verifier(LeafKey(subjectPublicKeyInfo: signer.publicKey)))
    let rows: [(UInt16, Digest)] = [(0x0203, .sha1), (0x0503, .sha384), (0x0603, .sha512)]
    for (scheme, digest) in rows {
      let hash = try digest.hash([9])
      let good = try signer.sign([9], scheme)
      #expect(verifier.accepts(good, hash: hash))
      #expect(!verifier.accepts(good, hash: Array(hash.dropFirst())))
    }
  }

  @Test func `Inverses are right from one to the order less one, and none for zero`() {
    let one = Array(repeating: UInt8(0), count: 31) + [1]
    #expect(inverse(one) == one)
    let last = plus(Self.order, -1)
    #expect(inverse(last) == last)
    for _ in 0..<500 {
      let value = [UInt8(0x7f)] + (1..<32).map { _ in UInt8.random(in: 0...255) }
      #expect(inverse(value).flatMap { inverse($0) } == value)
    }
    for none in [[], Array(repeating: 0, count: 32), Self.order] { #expect(inverse(none) == nil) }
    #expect(Scalar(Array(repeating: UInt8(1), count: 33)) == nil)
  }

  @Test func `A key that is not on P-256 has no table`() throws {
    for kind in ["P-384", "RSA", "ED25519"] {
      #expect(P256Verifier(try LeafKey(subjectPublicKeyInfo: SigningTool(kind).publicKey)) == nil)
    }
  }

  @Test func `A key with a table proves and refuses as before`() throws {
    let signer = try SigningTool("P-256")
    let key = try LeafKey(subjectPublicKeyInfo: signer.publicKey)
    let good = try signer.sign([5, 6], 0x0403)
    let method = SignatureMethod(hash: .sha256, padding: .none)
    for _ in 0..<3 { #expect(key.hot.verifier(for: key) == nil) }
    key.hot.make(key)
    #expect(key.hot.verifier(for: key) != nil)
    #expect(key.verifies(good, over: [5, 6], method))
    #expect(!key.verifies(good, over: [5, 7], method))
  }
}
