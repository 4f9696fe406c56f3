import PinfoldModel
import PinfoldWire
import Testing

/// The cursor: what it reads, and what it says when bytes are missing.
@Suite struct ByteReaderTests {
  @Test func `numbers are read most significant byte first`() throws {
    let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    var reader = ByteReader(bytes.span, at: 100)
    #expect(try reader.u8() == 1)
    #expect(try reader.u16() == 0x0203)
    #expect(try reader.u24() == 0x040506)
    #expect(try reader.u32() == 0x0708_090a)
    let isAtEnd = reader.isAtEnd
    #expect(isAtEnd)
    let offset = reader.offset
    #expect(offset == 110)
    try reader.finish()
  }

  @Test(arguments: 0..<4)
  func `a shortage in a whole message is malformed where it is seen`(_ count: Int) {
    let bytes = Array([UInt8](repeating: 1, count: 4).prefix(count))
    var reader = ByteReader(bytes.span, at: 7)
    do throws(WireError) {
      _ = try reader.skip(4)
      Issue.record("four bytes were read of \(count)")
    } catch {
      #expect(error == .malformed("a field runs past the end of what holds it", at: 7))
    }
  }

  @Test(arguments: 0..<4)
  func `a shortage in a growing buffer says how much is wanted`(_ count: Int) {
    let bytes = Array([UInt8](repeating: 1, count: 4).prefix(count))
    var reader = ByteReader(bytes.span, isWhole: false)
    do throws(WireError) {
      _ = try reader.copy(4)
      Issue.record("four bytes were read of \(count)")
    } catch {
      #expect(error == .incomplete(needed: 4 - count))
    }
    let remaining = reader.remaining
    #expect(remaining == count, "nothing is taken by a read that fails")
  }

  @Test(arguments: [1, 2, 3])
  func `a vector lies behind its length`(_ width: Int) throws {
    let bytes = Wire.vector(width, [9, 8, 7]) + [6]
    var reader = ByteReader(bytes.span, at: 50)
    #expect(try reader.vector(width: width) == (50 + width)..<(53 + width))
    #expect(try reader.u8() == 6)
    reader = ByteReader(bytes.span, at: 50)
    var inner = try reader.nested(width: width, atLeast: 3)
    let offset = inner.offset
    #expect(offset == 50 + width)
    #expect(try inner.copy(3) == [9, 8, 7])
    try inner.finish()
    let remaining = reader.remaining
    #expect(remaining == 1)
  }

  @Test(arguments: [1, 2, 3])
  func `a vector shorter than allowed is malformed at its length`(_ width: Int) {
    let bytes = [0] + Wire.vector(width, [9, 8, 7])
    var reader = ByteReader(bytes.span)
    do throws(WireError) {
      _ = try reader.u8()
      _ = try reader.vector(width: width, atLeast: 4)
      Issue.record("the vector was taken")
    } catch {
      #expect(error == .malformed("a vector is shorter than the protocol allows", at: 1))
    }
  }

  @Test func `a nested reader ends where its vector ends`() throws {
    let bytes: [UInt8] = [2, 1, 2, 3]
    var reader = ByteReader(bytes.span)
    var inner = try reader.nested(width: 1)
    do throws(WireError) {
      _ = try inner.u24()
      Issue.record("a byte behind the vector was read")
    } catch {
      #expect(error == .malformed("a field runs past the end of what holds it", at: 1))
    }
  }

  @Test func `a list of 16-bit values is even and not empty`() throws {
    let good = Wire.vector(2, [0, 1, 0, 2])
    var reader = ByteReader(good.span)
    #expect(try reader.u16List(width: 2) == [1, 2])
    for bad in [Wire.vector(2, []), Wire.vector(2, [1]), Wire.vector(2, [0, 1, 2])] {
      var reader = ByteReader(bad.span)
      do throws(WireError) {
        _ = try reader.u16List(width: 2)
        Issue.record("\(bad) was taken")
      } catch {
        guard case .malformed = error else {
          Issue.record("\(error)")
          continue
        }
      }
    }
  }

  @Test func `bytes left over are malformed at the first of them`() throws {
    let bytes: [UInt8] = [1, 2, 3]
    var reader = ByteReader(bytes.span, at: 4)
    _ = try reader.u8()
    do throws(WireError) {
      try reader.finish()
      Issue.record("two bytes are left over")
    } catch {
      #expect(error == .malformed("bytes lie behind the last field", at: 5))
    }
  }

  @Test func `errors are equal by kind, text and place`() {
    #expect(WireError.malformed("a", at: 1) == .malformed("a", at: 1))
    #expect(WireError.malformed("a", at: 1) != .malformed("a", at: 2))
    #expect(WireError.malformed("a", at: 1) != .malformed("b", at: 1))
    #expect(WireError.malformed("a", at: 1) != .refused(.malformedHandshake, "a", at: 1))
    #expect(WireError.incomplete(needed: 1) != .incomplete(needed: 2))
  }
}
