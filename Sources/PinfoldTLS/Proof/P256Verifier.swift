import COpenSSL
import Synchronization

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
/// Sendable: groups and moduli are not changed after `init`; a workspace belongs to one call at a time.
@safe final class P256Verifier: Sendable {
  nonisolated(unsafe) private let curve: OpaquePointer
  /// The same curve with the key's point as base point, and a table for it.
  nonisolated(unsafe) private let keyed: OpaquePointer
  private let moduli: P256Moduli
  private let idle = Mutex<[P256Workspace]>([])
  /// Workspaces kept: as many as there are likely to be threads.
  private static let idleLimit = 16

  /// `nil` if the key is not on P-256, or OpenSSL makes no table here.
  init?(_ key: LeafKey) {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard key.kind == .ellipticCurve("prime256v1"), let raw = unsafe key.raw,
      let curve = unsafe EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)
    else { return nil }
    guard let keyed = unsafe EC_GROUP_dup(curve), let moduli = unsafe P256Moduli(of: curve) else {
      unsafe EC_GROUP_free(curve)
      return nil
    }
    unsafe self.curve = curve
    unsafe self.keyed = keyed
    self.moduli = moduli
    guard let point = unsafe EC_POINT_new(curve) else { return nil }
    defer { unsafe EC_POINT_free(point) }
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
      let workspace = unsafe idle.withLock({ $0.popLast() }) ?? P256Workspace(on: curve)
    else { return false }
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    let isGood =
      unsafe workspace.load(r: r, s: s, inverse: inverse, hash: hash)
      && workspace.areInRange(moduli) && workspace.makeFactors(moduli)
      && workspace.makePoint(curve, keyed) && workspace.isCoordinateOfPoint(curve, moduli)
    // One that failed is thrown away, as a context for EVP is.
    if isGood { idle.withLock { if $0.count < Self.idleLimit { $0.append(workspace) } } }
    return isGood
  }

  /// The two numbers of a DER signature; `nil` unless it is written in the one way DER has.
  static func numbers(_ signature: [UInt8]) -> (r: Scalar, s: Scalar)? {
    guard signature.count >= 8, signature.count <= 72, signature[0] == 0x30,
      Int(signature[1]) == signature.count - 2
    else { return nil }
    var rest = signature[2...]
    guard let r = number(&rest), let s = number(&rest), rest.isEmpty else { return nil }
    return (r, s)
  }

  private static func number(_ rest: inout ArraySlice<UInt8>) -> Scalar? {
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
    return Scalar(digits)
  }
}
