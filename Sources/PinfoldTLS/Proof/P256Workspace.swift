import COpenSSL

/// The two moduli of P-256, prepared for multiplication (BN_MONT_CTX_set(3)).
///
/// Sendable: never changed after `init`.
@safe final class P256Moduli: Sendable {
  nonisolated(unsafe) fileprivate let order: OpaquePointer
  nonisolated(unsafe) fileprivate let orderReducer: OpaquePointer
  nonisolated(unsafe) fileprivate let fieldReducer: OpaquePointer

  /// Those of `curve`, which has to outlive this.
  init?(of curve: OpaquePointer) {
    guard let order = unsafe EC_GROUP_get0_order(curve), let field = unsafe EC_GROUP_get0_field(curve),
      let scratch = unsafe BN_CTX_new()
    else { return nil }
    defer { unsafe BN_CTX_free(scratch) }
    guard let orderReducer = unsafe BN_MONT_CTX_new() else { return nil }
    guard let fieldReducer = unsafe BN_MONT_CTX_new() else {
      unsafe BN_MONT_CTX_free(orderReducer)
      return nil
    }
    unsafe self.order = order
    unsafe self.orderReducer = orderReducer
    unsafe self.fieldReducer = fieldReducer
    guard unsafe BN_MONT_CTX_set(orderReducer, order, scratch) == 1,
      unsafe BN_MONT_CTX_set(fieldReducer, field, scratch) == 1
    else { return nil }
  }

  deinit {
    unsafe BN_MONT_CTX_free(orderReducer)
    unsafe BN_MONT_CTX_free(fieldReducer)
  }
}

/// What one verification by a `P256Verifier` computes with, kept for the next one: making it anew would cost a
/// tenth of the verification. Holds no secret. Owns all its parts.
///
/// The steps are called in the order in which they are declared, each only if the one before said yes.
///
/// `@unchecked Sendable`: one call has it at a time, lent out by its verifier.
@safe final class P256Workspace: @unchecked Sendable {  // One call's at a time, see above.
  private let scratch: OpaquePointer
  private let r: OpaquePointer
  private let s: OpaquePointer
  private let e: OpaquePointer
  private let w: OpaquePointer
  private let x: OpaquePointer
  private let z: OpaquePointer
  private let sum: OpaquePointer
  private let part: OpaquePointer

  /// `nil` when OpenSSL has no memory.
  init?(on curve: OpaquePointer) {
    guard let scratch = unsafe BN_CTX_new() else { return nil }
    // Never ended before the whole is freed: the numbers belong to it.
    unsafe BN_CTX_start(scratch)
    guard let r = unsafe BN_CTX_get(scratch), let s = unsafe BN_CTX_get(scratch),
      let e = unsafe BN_CTX_get(scratch), let w = unsafe BN_CTX_get(scratch), let x = unsafe BN_CTX_get(scratch),
      let z = unsafe BN_CTX_get(scratch), let sum = unsafe EC_POINT_new(curve)
    else {
      unsafe BN_CTX_free(scratch)
      return nil
    }
    guard let part = unsafe EC_POINT_new(curve) else {
      unsafe EC_POINT_free(sum)
      unsafe BN_CTX_free(scratch)
      return nil
    }
    unsafe self.scratch = scratch
    unsafe self.r = r
    unsafe self.s = s
    unsafe self.e = e
    unsafe self.w = w
    unsafe self.x = x
    unsafe self.z = z
    unsafe self.sum = sum
    unsafe self.part = part
  }

  deinit {
    unsafe EC_POINT_free(sum)
    unsafe EC_POINT_free(part)
    unsafe BN_CTX_free(scratch)
  }

  /// Takes the signature's numbers, what is said to be the inverse of `s`, and the first 32 bytes of the hash.
  func load(r: Scalar, s: Scalar, inverse: Scalar, hash: [UInt8]) -> Bool {
    unsafe Self.set(self.r, r) && Self.set(self.s, s) && Self.set(w, inverse)
      && BN_bin2bn(hash, Int32(min(hash.count, 32)), e) != nil
  }

  private static func set(_ number: OpaquePointer, _ value: Scalar) -> Bool {
    var words = (
      value.words.0.littleEndian, value.words.1.littleEndian, value.words.2.littleEndian, value.words.3.littleEndian
    )
    return unsafe withUnsafeBytes(of: &words) {
      unsafe BN_lebin2bn($0.bindMemory(to: UInt8.self).baseAddress, 32, number) != nil
    }
  }

  /// Whether `r` and `s` lie between 1 and the order less one.
  func areInRange(_ moduli: P256Moduli) -> Bool {
    unsafe BN_is_zero(r) == 0 && BN_cmp(r, moduli.order) < 0 && BN_is_zero(s) == 0 && BN_cmp(s, moduli.order) < 0
  }

  /// Makes the two factors, in `e` and `s`. No if the inverse is none.
  func makeFactors(_ moduli: P256Moduli) -> Bool {
    let order = unsafe moduli.orderReducer
    // A number times another one in Montgomery's form is their plain product.
    return unsafe BN_to_montgomery(w, w, order, scratch) == 1
      && BN_mod_mul_montgomery(x, s, w, order, scratch) == 1 && BN_is_one(x) == 1
      && (BN_cmp(e, moduli.order) < 0 || BN_sub(e, e, moduli.order) == 1)
      && BN_mod_mul_montgomery(e, e, w, order, scratch) == 1
      && BN_mod_mul_montgomery(s, r, w, order, scratch) == 1
  }

  /// Makes the point that the signature speaks of, in `sum`. No if it is infinity.
  func makePoint(_ curve: OpaquePointer, _ keyed: OpaquePointer) -> Bool {
    unsafe EC_POINT_mul(curve, sum, e, nil, nil, scratch) == 1
      && EC_POINT_mul(keyed, part, s, nil, nil, scratch) == 1
      && EC_POINT_add(curve, sum, sum, part, scratch) == 1 && EC_POINT_is_at_infinity(curve, sum) == 0
  }

  /// Whether the point's x coordinate is `r` modulo the order. The point is (X : Y : Z) with x = X / Z², and dividing
  /// costs more than all the rest of this, so r · Z² is compared with X.
  ///
  /// The field is larger than the order by less than 2^129 (Hasse's bound): for the rare r below that difference, x
  /// could be r plus the order as well. Those are left to EVP.
  func isCoordinateOfPoint(_ curve: OpaquePointer, _ moduli: P256Moduli) -> Bool {
    let field = unsafe moduli.fieldReducer
    return unsafe BN_num_bits(r) > 130 && pinfold_jacobian(curve, sum, x, z, scratch) == 1
      && BN_to_montgomery(z, z, field, scratch) == 1 && BN_mod_mul_montgomery(z, z, z, field, scratch) == 1
      && BN_mod_mul_montgomery(z, z, r, field, scratch) == 1 && BN_cmp(z, x) == 0
  }
}
