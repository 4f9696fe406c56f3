import PinfoldModel
import PinfoldPolicy
import Testing

@Suite struct PinSetTests {
  private let key = Samples.digest(1)
  private let certificate = Samples.digest(2)

  @Test func `an empty set contains nothing`() {
    #expect(PinSet.empty.isEmpty)
    #expect(!PinSet.empty.contains(publicKey: key, certificate: certificate))
    #expect(!PinSet([]).contains(publicKey: key, certificate: nil))
  }

  @Test("A pin matches wherever it stands in the set", arguments: 0..<5)
  func position(_ position: Int) {
    for pin in [Pin.publicKey(key), .certificate(certificate)] {
      var pins = (10..<15).map { Pin.publicKey(Samples.digest($0)) }
      #expect(!PinSet(pins).contains(publicKey: key, certificate: certificate))
      pins[position] = pin
      #expect(PinSet(pins).contains(publicKey: key, certificate: certificate))
    }
  }

  @Test func `a key pin never matches a certificate's hash, nor the other way round`() {
    #expect(!PinSet([.publicKey(certificate)]).contains(publicKey: key, certificate: certificate))
    #expect(!PinSet([.certificate(key)]).contains(publicKey: key, certificate: certificate))
    #expect(
      !PinSet([.certificate(key)]).contains(publicKey: key, certificate: nil), "a raw public key has no certificate")
  }

  @Test func `a digest that differs in one bit does not match`() throws {
    for bit in 0..<256 {
      var bytes = key.bytes
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      let other = try #require(Digest256(bytes))
      #expect(!PinSet([.publicKey(other)]).contains(publicKey: key, certificate: nil))
    }
  }
}
