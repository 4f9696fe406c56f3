extension Polynomial {
  /// ByteEncode (algorithm 5): `width` bits of each coefficient, least significant first; 32 × `width` bytes.
  func encoded(width: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(32 * width)
    var buffer: UInt32 = 0
    var filled = 0
    for coefficient in coefficients {
      buffer |= UInt32(coefficient) << UInt32(filled)
      filled += width
      while filled >= 8 {
        bytes.append(UInt8(truncatingIfNeeded: buffer))
        buffer >>= 8
        filled -= 8
      }
    }
    return bytes
  }

  /// ByteDecode (algorithm 6) of exactly 32 × `width` bytes; nil for any other count. With 12 bits the numbers are
  /// taken modulo 3329.
  init?(encoded bytes: ArraySlice<UInt8>, width: Int) {
    guard bytes.count == 32 * width else { return nil }
    self.init()
    var buffer: UInt32 = 0
    var filled = 0
    var index = 0
    for byte in bytes {
      buffer |= UInt32(byte) << UInt32(filled)
      filled += 8
      while filled >= width {
        let value = buffer & (1 << UInt32(width) - 1)
        coefficients[index] = UInt16(truncatingIfNeeded: width == 12 ? value % Self.modulus : value)
        index += 1
        buffer >>= UInt32(width)
        filled -= width
      }
    }
  }

  /// Compress (§4.2.1): each coefficient scaled to `width` bits, rounded half up.
  func compressed(width: Int) -> Self {
    Polynomial(
      coefficients.map {
        let scaled = (UInt32($0) << UInt32(width) + Self.modulus / 2) / Self.modulus
        return UInt16(truncatingIfNeeded: scaled & (1 << UInt32(width) - 1))
      })
  }

  /// Decompress (§4.2.1): the opposite of `compressed`, up to rounding.
  func decompressed(width: Int) -> Self {
    Polynomial(
      coefficients.map {
        UInt16(truncatingIfNeeded: (UInt32($0) * Self.modulus + 1 << UInt32(width - 1)) >> UInt32(width))
      })
  }

  /// SampleNTT (algorithm 7): a uniform transform out of SHAKE-128 over `seed`, which is public. The sampler reads
  /// 575 bytes on average; the output is lengthened until it is enough.
  static func uniform(seed: [UInt8]) throws(TLSError) -> Self {
    // 840 bytes are five blocks of SHAKE-128; more are needed about once in 2^38 polynomials.
    var count = 840
    while count <= 8 * 840 {
      if let sampled = accepted(try Keccak.shake128.output(seed, count: count)) { return sampled }
      count *= 2
    }
    throw .failed(call: "SampleNTT", detail: "too many rejected candidates")
  }

  private static func accepted(_ stream: [UInt8]) -> Self? {
    var taken: [UInt16] = []
    taken.reserveCapacity(degree)
    for index in stride(from: 0, to: stream.count - 2, by: 3) {
      let (first, second, third) = (UInt16(stream[index]), UInt16(stream[index + 1]), UInt16(stream[index + 2]))
      let low = first | (second & 15) << 8
      let high = second >> 4 | third << 4
      if low < modulus { taken.append(low) }
      if high < modulus, taken.count < degree { taken.append(high) }
      if taken.count == degree { return Polynomial(taken) }
    }
    return nil
  }

  /// SamplePolyCBD with η = 2 (algorithm 8) over PRF(`seed`, `counter`) = SHAKE-256(seed ‖ counter) of 128 bytes.
  static func small(seed: [UInt8], counter: UInt8) throws(TLSError) -> Self {
    let stream = try Keccak.shake256.output(seed + [counter], count: 128)
    var result = Polynomial()
    for (index, byte) in stream.enumerated() {
      for half in 0..<2 {
        let bits = UInt32(byte) >> UInt32(4 * half)
        let difference = (bits & 1) + (bits >> 1 & 1) + modulus - (bits >> 2 & 1) - (bits >> 3 & 1)
        result.coefficients[2 * index + half] = UInt16(truncatingIfNeeded: difference % modulus)
      }
    }
    return result
  }
}
