import PinfoldCrypto
import PinfoldModel
import PinfoldSupply
import Testing

@testable import pinfold_fuzz

/// The targets can fail, and reach what they are about: a fuzzer that always says yes would find nothing.
@Suite struct PromiseTests {
  @Test("A promise that does not hold is thrown, one that holds is not") func unless() throws {
    #expect(throws: BrokenPromise.self) { try BrokenPromise.unless(false, "never") }
    try BrokenPromise.unless(true, "never")
  }

  @Test("The key everybody knows signs what the envelope target believes, and nothing else") func envelope() throws {
    let key = try #require(EnvelopeTarget.key)
    try EnvelopeTarget.run(EnvelopeTarget.signed(by: [key]))
    let other = Envelope.sign([1, 2, 3], type: EnvelopeTarget.type, keys: [key])
    #expect(throws: BrokenPromise.self) { try EnvelopeTarget.run(other) }
  }

  @Test("Records in each format are believed as they were signed, and not with a pin that is of no seed")
  func pinRecords() throws {
    let records = PinRecordTarget.records
    #expect(Set(records.keys) == ["ed25519", "eddsa", "es256", "fingerprint", "claims"])
    for (name, bytes) in records {
      try PinRecordTarget.run(bytes)
      let known = PinRecordTarget.pins[0]
      let isSigned = name != "claims" && PinRecordTarget.isBelieved(bytes)
      #expect(isSigned == (name != "claims"), "\(name)")
      let changed = String(decoding: bytes, as: UTF8.self).replacing(known, with: String(known.reversed()))
      #expect(!PinRecordTarget.isBelieved(Array(changed.utf8)) || changed.utf8.elementsEqual(bytes), "\(name)")
    }
    let other = try #require(EnvelopeTarget.key).sign(Array(String(repeating: "ab", count: 32).utf8))
    let text =
      "{\"domain\":\"lab.test\",\"fingerprint\":\"\(String(repeating: "ab", count: 32))\",\"signature\":\"\(Base64.encode(other))\",\"ttl\":600}"
    #expect(throws: BrokenPromise.self) { try PinRecordTarget.run(Array(text.utf8)) }
  }

  @Test("Inputs are cut at the limit") func limit() throws {
    // A head that never ends is refused at 8 KiB; a promise would break if so many bytes were waited for.
    try FuzzTarget.connectHead.run(Array(repeating: 0x41, count: 64 * 1024))
  }

  @Test("Fields come off the front, and what is missing is empty") func fields() {
    var input = InputBytes([0, 2, 7, 8, 9, 1])
    #expect(input.counted() == [7, 8])
    #expect(input.number() == 0x0901)
    #expect(input.byte() == 0)
    #expect(input.counted() == [])
    #expect(InputBytes.counted([7, 8]) == [0, 2, 7, 8])
    #expect([1, 2, 3, 4, 5].pieces(of: 2) == [[1, 2], [3, 4], [5]])
  }
}
