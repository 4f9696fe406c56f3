import CSodium

/// Unpredictable bytes from the system's generator (randombytes(3)).
package enum Random {
  /// `count` bytes; negative counts give none.
  package static func bytes(_ count: Int) throws(CryptoError) -> [UInt8] {
    try Sodium.start()
    var bytes = [UInt8](repeating: 0, count: max(count, 0))
    unsafe randombytes_buf(&bytes, bytes.count)
    return bytes
  }

  /// A number below `bound` without bias; 0 when `bound` is 0 or 1.
  package static func below(_ bound: UInt32) throws(CryptoError) -> UInt32 {
    try Sodium.start()
    return randombytes_uniform(bound)
  }
}
