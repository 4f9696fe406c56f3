import CSodium

/// Overwrites a secret where it lies, in a way no compiler leaves out (sodium_memzero(3)). Copies made before are not
/// reached: hold a secret in one array only.
package func erase(_ bytes: inout [UInt8]) {
  unsafe bytes.withUnsafeMutableBytes { buffer in
    guard let base = buffer.baseAddress else { return }
    unsafe sodium_memzero(base, buffer.count)
  }
}
