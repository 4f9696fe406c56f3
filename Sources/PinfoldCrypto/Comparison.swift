import CSodium

/// Whether two byte strings are equal, in time that depends on their lengths alone (sodium_memcmp(3)). Lengths are
/// not secret.
package func constantTimeEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  guard left.count > 0 else { return true }
  return unsafe left.withUnsafeBufferPointer { first in
    unsafe right.withUnsafeBufferPointer { second in
      unsafe sodium_memcmp(first.baseAddress, second.baseAddress, first.count) == 0
    }
  }
}

/// Whether two byte strings are equal, in time that depends on their lengths alone.
package func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  constantTimeEqual(left.span, right.span)
}
