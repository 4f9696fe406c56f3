/// The inverse of a number modulo the order of P-256, in variable time: for values that are public, as everything in
/// a signature's verification is. About an eighth of the cost of BN_mod_inverse(3).
///
/// The method is the division steps of Bernstein and Yang ("Fast constant-time gcd computation and modular
/// inversion", 2019), 62 at a time on the low words, then applied to the whole numbers at once. The caller checks the
/// product, so that no mistake here can make a signature valid.
struct ScalarInverse {
  /// A number in five limbs of 62 bits; the last one carries the sign.
  private typealias Wide = (Int64, Int64, Int64, Int64, Int64)

  /// The result of 62 steps on (f, g): both multiplied by this, then divided by 2^62.
  private struct Matrix {
    var u: Int64 = 1
    var v: Int64 = 0
    var q: Int64 = 0
    var r: Int64 = 1
  }

  private static var mask: Int64 { (1 << 62) - 1 }
  /// The order of P-256 (SP 800-186 §3.2.1.3) in limbs. Computed: a stored global would be asked whether it is
  /// there at each use.
  private static var modulus: Wide {
    wide(0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, 0xffff_ffff_ffff_ffff, 0xffff_ffff_0000_0000)
  }
  /// The order's inverse modulo 2^62.
  private static var orderInverse: Int64 { 0x332e_3755_11ff_43b1 }
  /// Steps never needed: a bound on the loop, in rounds of 62.
  private static let roundLimit = 16

  /// The inverse; `nil` for multiples of the order.
  static func of(_ number: Scalar) -> Scalar? {
    var f = modulus
    var g = wide(number.words.0, number.words.1, number.words.2, number.words.3)
    var d: Wide = (0, 0, 0, 0, 0)
    var e: Wide = (1, 0, 0, 0, 0)
    var delta = 1
    var rounds = 0
    while g != (0, 0, 0, 0, 0) {
      guard rounds < roundLimit else { return nil }
      rounds += 1
      let matrix = steps(&delta, f.0 | f.1 << 62, g.0 | g.1 << 62)
      (d, e) = applied(matrix, d, e, modulus: true)
      (f, g) = applied(matrix, f, g, modulus: false)
    }
    // f is now the greatest common divisor or its negative, and d times the number is f.
    let isNegative = f.4 < 0
    let divisor = isNegative ? normal((-f.0, -f.1, -f.2, -f.3, -f.4)) : f
    guard divisor == (1, 0, 0, 0, 0) else { return nil }
    if isNegative { d = (-d.0, -d.1, -d.2, -d.3, -d.4) }
    return reduced(d)
  }

  private static func steps(_ delta: inout Int, _ low: Int64, _ other: Int64) -> Matrix {
    var f = UInt64(bitPattern: low)
    var g = UInt64(bitPattern: other)
    var matrix = Matrix()
    var left = 62
    while true {
      let zeros = min(left, g.trailingZeroBitCount)
      g &>>= UInt64(zeros)
      matrix.u &<<= Int64(zeros)
      matrix.v &<<= Int64(zeros)
      delta &+= zeros
      left &-= zeros
      if left == 0 { return matrix }
      if delta > 0 {
        delta = 0 &- delta
        (f, g) = (g, g &- f)
        (matrix.u, matrix.q) = (matrix.q, matrix.q &- matrix.u)
        (matrix.v, matrix.r) = (matrix.r, matrix.r &- matrix.v)
      } else {
        g = g &+ f
        matrix.q = matrix.q &+ matrix.u
        matrix.r = matrix.r &+ matrix.v
      }
    }
  }

  /// (u·a + v·b) / 2^62 and (q·a + r·b) / 2^62, exact: either the steps made the low bits zero, or a multiple of the
  /// order does. Each application then adds less than one order to the size, which the top limb has room for.
  private static func applied(_ m: Matrix, _ a: Wide, _ b: Wide, modulus isModular: Bool) -> (Wide, Wide) {
    (combined(m.u, a, m.v, b, isModular), combined(m.q, a, m.r, b, isModular))
  }

  private static func combined(_ x: Int64, _ a: Wide, _ y: Int64, _ b: Wide, _ isModular: Bool) -> Wide {
    let low = x &* a.0 &+ y &* b.0
    let factor = isModular ? (0 &- low) &* orderInverse & mask : 0
    let n = modulus
    var carry = product(x, a.0) &+ product(y, b.0) &+ product(factor, n.0)
    carry &>>= 62
    carry &+= product(x, a.1) &+ product(y, b.1) &+ product(factor, n.1)
    let first = Int64(truncatingIfNeeded: carry) & mask
    carry &>>= 62
    carry &+= product(x, a.2) &+ product(y, b.2) &+ product(factor, n.2)
    let second = Int64(truncatingIfNeeded: carry) & mask
    carry &>>= 62
    carry &+= product(x, a.3) &+ product(y, b.3) &+ product(factor, n.3)
    let third = Int64(truncatingIfNeeded: carry) & mask
    carry &>>= 62
    carry &+= product(x, a.4) &+ product(y, b.4) &+ product(factor, n.4)
    let fourth = Int64(truncatingIfNeeded: carry) & mask
    return (first, second, third, fourth, Int64(truncatingIfNeeded: carry &>> 62))
  }

  private static func product(_ a: Int64, _ b: Int64) -> Int128 { Int128(a) &* Int128(b) }

  /// The number brought between zero and the order.
  private static func reduced(_ value: Wide) -> Scalar? {
    var value = normal(value)
    let n = modulus
    for _ in 0..<(2 * roundLimit) {
      if value.4 < 0 {
        value = normal((value.0 &+ n.0, value.1 &+ n.1, value.2 &+ n.2, value.3 &+ n.3, value.4 &+ n.4))
      } else {
        let less = normal((value.0 &- n.0, value.1 &- n.1, value.2 &- n.2, value.3 &- n.3, value.4 &- n.4))
        if less.4 < 0 { return scalar(value) }
        value = less
      }
    }
    return nil
  }

  /// Limbs of 62 bits again, after limb by limb arithmetic.
  private static func normal(_ a: Wide) -> Wide {
    let b = a.1 &+ a.0 >> 62
    let c = a.2 &+ b >> 62
    let d = a.3 &+ c >> 62
    return (a.0 & mask, b & mask, c & mask, d & mask, a.4 &+ d >> 62)
  }

  private static func wide(_ a: UInt64, _ b: UInt64, _ c: UInt64, _ d: UInt64) -> Wide {
    let low = UInt64(bitPattern: mask)
    return (
      Int64(a & low), Int64((a >> 62 | b << 2) & low), Int64((b >> 60 | c << 4) & low),
      Int64((c >> 58 | d << 6) & low), Int64(d >> 56)
    )
  }

  private static func scalar(_ a: Wide) -> Scalar {
    let (p, q, r) = (UInt64(bitPattern: a.0), UInt64(bitPattern: a.1), UInt64(bitPattern: a.2))
    let (s, t) = (UInt64(bitPattern: a.3), UInt64(bitPattern: a.4))
    return Scalar(p | q << 62, q >> 2 | r << 60, r >> 4 | s << 58, s >> 6 | t << 56)
  }
}
