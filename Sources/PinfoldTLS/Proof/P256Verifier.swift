import COpenSSL

/// ECDSA verification on P-256 for one key that is met often: with a table of the key's multiples, as OpenSSL has one
/// for the curve's own base point, both multiplications are fixed-base ones and the whole costs about 0.4 of
/// EVP_PKEY_verify(3). The table takes 150 KB and 40 ms.
///
/// It only ever says yes (FIPS 186-5 §6.4.2, every step). Whatever is odd, wrong or fails is a no, which means
/// "ask EVP".
///
/// Every point but infinity has the curve's prime order, so what OpenSSL's fixed-base code assumes of the curve's
/// base point holds for the key's point alike.
///
/// Sendable: groups are not changed after `init`; all scratch numbers belong to one call.
@safe final class P256Verifier: Sendable {
  nonisolated(unsafe) private let curve: OpaquePointer
  /// The same curve with the key's point as base point, and a table for it.
  nonisolated(unsafe) private let keyed: OpaquePointer

  /// `nil` if the key is not on P-256, or OpenSSL makes no table here.
  init?(_ key: LeafKey) {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard key.kind == .ellipticCurve("prime256v1"), let raw = unsafe key.raw,
      let curve = unsafe EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)
    else { return nil }
    guard let keyed = unsafe EC_GROUP_dup(curve), let point = unsafe EC_POINT_new(curve) else {
      unsafe EC_GROUP_free(curve)
      return nil
    }
    defer { unsafe EC_POINT_free(point) }
    unsafe self.curve = curve
    unsafe self.keyed = keyed
    var encoded: UnsafeMutablePointer<UInt8>?
    let count = unsafe EVP_PKEY_get1_encoded_public_key(raw, &encoded)
    defer { unsafe pinfold_free(encoded) }
    guard count > 0, unsafe EC_POINT_oct2point(curve, point, encoded, count, nil) == 1,
      unsafe EC_POINT_is_at_infinity(curve, point) == 0, unsafe EC_POINT_is_on_curve(curve, point, nil) == 1,
      unsafe EC_GROUP_set_generator(keyed, point, EC_GROUP_get0_order(curve), BN_value_one()) == 1,
      unsafe pinfold_precompute(keyed) == 1
    else { return nil }
  }

  deinit {
    unsafe EC_GROUP_free(keyed)
    unsafe EC_GROUP_free(curve)
  }

  /// `true` if `signature` (DER) is this key's over `hash`; `false` if not, or in any doubt.
  func accepts(_ signature: [UInt8], hash: [UInt8]) -> Bool {
    guard let (r, s) = Self.numbers(signature), let inverse = ScalarInverse.of(s),
      let scratch = unsafe BN_CTX_new()
    else { return false }
    ErrorQueue.clear()
    unsafe BN_CTX_start(scratch)
    defer {
      unsafe BN_CTX_end(scratch)
      unsafe BN_CTX_free(scratch)
      ErrorQueue.clear()
    }
    return unsafe check(r, s, inverse, Array(hash.prefix(32)), scratch)
  }

  private func check(
    _ rBytes: [UInt8], _ sBytes: [UInt8], _ inverseBytes: [UInt8], _ hash: [UInt8], _ scratch: OpaquePointer
  ) -> Bool {
    guard let order = unsafe EC_GROUP_get0_order(curve), let r = unsafe BN_CTX_get(scratch),
      let s = unsafe BN_CTX_get(scratch), let e = unsafe BN_CTX_get(scratch), let w = unsafe BN_CTX_get(scratch),
      let x = unsafe BN_CTX_get(scratch), unsafe BN_bin2bn(rBytes, 32, r) != nil,
      unsafe BN_bin2bn(sBytes, 32, s) != nil, unsafe BN_bin2bn(inverseBytes, 32, w) != nil,
      unsafe BN_bin2bn(hash, Int32(hash.count), e) != nil,
      // Both numbers lie between 1 and the order, and w is the inverse of s.
      unsafe BN_is_zero(r) == 0, unsafe BN_cmp(r, order) < 0, unsafe BN_is_zero(s) == 0,
      unsafe BN_cmp(s, order) < 0, unsafe BN_mod_mul(x, s, w, order, scratch) == 1, unsafe BN_is_one(x) == 1,
      // e and s become the two factors.
      unsafe BN_mod_mul(e, e, w, order, scratch) == 1, unsafe BN_mod_mul(s, r, w, order, scratch) == 1
    else { return false }
    guard let sum = unsafe EC_POINT_new(curve) else { return false }
    defer { unsafe EC_POINT_free(sum) }
    guard let part = unsafe EC_POINT_new(curve) else { return false }
    defer { unsafe EC_POINT_free(part) }
    guard unsafe EC_POINT_mul(curve, sum, e, nil, nil, scratch) == 1,
      unsafe EC_POINT_mul(keyed, part, s, nil, nil, scratch) == 1,
      unsafe EC_POINT_add(curve, sum, sum, part, scratch) == 1,
      unsafe EC_POINT_is_at_infinity(curve, sum) == 0
    else { return false }
    return unsafe isCoordinate(r, of: sum, scratch)
  }

  /// Whether the point's x coordinate is `r` modulo the order. The point is (X : Y : Z) with x = X / Z², and dividing
  /// costs more than all the rest of this, so r · Z² is compared with X.
  ///
  /// The field is larger than the order by less than 2^129 (Hasse's bound): for the rare r below that difference, x could be r plus
  /// the order as well. Those are left to EVP.
  private func isCoordinate(_ r: OpaquePointer, of point: OpaquePointer, _ scratch: OpaquePointer) -> Bool {
    guard unsafe BN_num_bits(r) > 130, let field = unsafe EC_GROUP_get0_field(curve),
      let x = unsafe BN_CTX_get(scratch), let z = unsafe BN_CTX_get(scratch),
      unsafe pinfold_jacobian(curve, point, x, z, scratch) == 1,
      unsafe BN_mod_sqr(z, z, field, scratch) == 1, unsafe BN_mod_mul(z, z, r, field, scratch) == 1
    else { return false }
    return unsafe BN_cmp(z, x) == 0
  }

  /// The two numbers of a DER signature in 32 bytes each; `nil` unless it is written in the one way DER has.
  static func numbers(_ signature: [UInt8]) -> (r: [UInt8], s: [UInt8])? {
    guard signature.count >= 8, signature.count <= 72, signature[0] == 0x30,
      Int(signature[1]) == signature.count - 2
    else { return nil }
    var rest = signature[2...]
    guard let r = number(&rest), let s = number(&rest), rest.isEmpty else { return nil }
    return (r, s)
  }

  private static func number(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    guard rest.popFirst() == 0x02, let length = rest.popFirst(), (1...33).contains(length),
      rest.count >= Int(length)
    else { return nil }
    var digits = rest.prefix(Int(length))
    rest = rest.dropFirst(Int(length))
    guard let first = digits.first, first < 0x80 else { return nil }
    if first == 0, digits.count > 1 {
      digits = digits.dropFirst()
      guard let second = digits.first, second >= 0x80 else { return nil }
    }
    guard digits.count <= 32 else { return nil }
    return Array(repeating: 0, count: 32 - digits.count) + digits
  }
}
