/// A polynomial of degree 255 over the integers modulo 3329, or its number-theoretic transform (FIPS 203 §4.3).
///
/// Every coefficient is below `modulus`. All arithmetic divides by constants only, which compiles to multiplications:
/// no branch and no memory access depends on a coefficient.
struct Polynomial: Equatable {
  /// q of FIPS 203 §2.4.
  static let modulus: UInt32 = 3329
  /// n of FIPS 203 §2.4.
  static let degree = 256

  var coefficients: [UInt16]

  /// Zero.
  init() { coefficients = [UInt16](repeating: 0, count: Self.degree) }

  /// Takes 256 numbers below the modulus.
  init(_ coefficients: [UInt16]) { self.coefficients = coefficients }

  /// Powers of the root of unity 17 in bit-reversed order: 17^BitRev7(i) (FIPS 203 appendix A).
  private static let zetas: [UInt32] = (0..<128).map { power(reversed($0)) }
  /// 17^(2·BitRev7(i)+1), for multiplication of transforms.
  private static let gammas: [UInt32] = (0..<128).map { power(2 * reversed($0) + 1) }

  private static func reversed(_ value: Int) -> Int {
    (0..<7).reduce(0) { $0 | (value >> $1 & 1) << (6 - $1) }
  }

  private static func power(_ exponent: Int) -> UInt32 {
    (0..<exponent).reduce(1) { result, _ in result * 17 % modulus }
  }

  /// Coefficient-wise sum.
  static func + (left: Self, right: Self) -> Self {
    var sum = left
    for index in 0..<degree {
      sum.coefficients[index] = UInt16(
        truncatingIfNeeded: (UInt32(left.coefficients[index]) + UInt32(right.coefficients[index])) % modulus)
    }
    return sum
  }

  /// Coefficient-wise difference.
  static func - (left: Self, right: Self) -> Self {
    var difference = left
    for index in 0..<degree {
      difference.coefficients[index] = UInt16(
        truncatingIfNeeded: (UInt32(left.coefficients[index]) + modulus - UInt32(right.coefficients[index])) % modulus)
    }
    return difference
  }

  /// NTT (algorithm 9).
  func transformed() -> Self {
    var f = coefficients.map { UInt32($0) }
    var index = 1
    var length = 128
    while length >= 2 {
      for start in stride(from: 0, to: Self.degree, by: 2 * length) {
        let zeta = Self.zetas[index]
        index += 1
        for j in start..<(start + length) {
          let t = zeta * f[j + length] % Self.modulus
          f[j + length] = (f[j] + Self.modulus - t) % Self.modulus
          f[j] = (f[j] + t) % Self.modulus
        }
      }
      length /= 2
    }
    return Polynomial(f.map { UInt16(truncatingIfNeeded: $0) })
  }

  /// Inverse NTT (algorithm 10). 3303 is 128⁻¹.
  func restored() -> Self {
    var f = coefficients.map { UInt32($0) }
    var index = 127
    var length = 2
    while length <= 128 {
      for start in stride(from: 0, to: Self.degree, by: 2 * length) {
        let zeta = Self.zetas[index]
        index -= 1
        for j in start..<(start + length) {
          let t = f[j]
          f[j] = (t + f[j + length]) % Self.modulus
          f[j + length] = zeta * (f[j + length] + Self.modulus - t) % Self.modulus
        }
      }
      length *= 2
    }
    return Polynomial(f.map { UInt16(truncatingIfNeeded: $0 * 3303 % Self.modulus) })
  }

  /// Product of two transforms (algorithms 11 and 12).
  static func * (left: Self, right: Self) -> Self {
    var product = Polynomial()
    for pair in 0..<128 {
      let (a0, a1) = (UInt32(left.coefficients[2 * pair]), UInt32(left.coefficients[2 * pair + 1]))
      let (b0, b1) = (UInt32(right.coefficients[2 * pair]), UInt32(right.coefficients[2 * pair + 1]))
      let high = a1 * b1 % modulus * gammas[pair]
      product.coefficients[2 * pair] = UInt16(truncatingIfNeeded: (a0 * b0 + high) % modulus)
      product.coefficients[2 * pair + 1] = UInt16(truncatingIfNeeded: (a0 * b1 + a1 * b0) % modulus)
    }
    return product
  }
}
