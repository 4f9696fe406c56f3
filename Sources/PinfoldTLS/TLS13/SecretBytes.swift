import COpenSSL

/// Bytes that are zeroed when they are no longer needed (OPENSSL_cleanse(3)). Owns its memory.
///
/// Never printed: it has no description. Sendable, since the bytes do not change after `init`.
@safe package final class SecretBytes: Sendable {
  // Filled before init returns, never written again before deinit.
  private nonisolated(unsafe) let storage: UnsafeMutableBufferPointer<UInt8>

  /// Number of bytes.
  package var count: Int { unsafe storage.count }

  /// Copies `bytes` and zeroes them where they stood, so that this is the only copy. The array must not share its
  /// buffer with another one, or the caller's copy stays.
  package init(taking bytes: inout [UInt8]) {
    unsafe storage = .allocate(capacity: bytes.count)
    _ = unsafe storage.initialize(from: bytes)
    unsafe bytes.withUnsafeMutableBytes { memory in unsafe OPENSSL_cleanse(memory.baseAddress, memory.count) }
    bytes.removeAll()
  }

  /// Makes `count` bytes and lets `body` fill them; nil when it answers false.
  init?(count: Int, filledBy body: (UnsafeMutableBufferPointer<UInt8>) -> Bool) {
    let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count)
    unsafe memory.initialize(repeating: 0)
    unsafe storage = memory
    guard unsafe body(memory) else { return nil }
  }

  /// `first` and then `second`.
  init(_ first: SecretBytes, followedBy second: SecretBytes) {
    unsafe storage = .allocate(capacity: first.count + second.count)
    unsafe storage.initialize(repeating: 0)
    unsafe UnsafeMutableRawBufferPointer(storage).copyMemory(from: UnsafeRawBufferPointer(first.storage))
    unsafe UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(storage)[first.count...])
      .copyMemory(from: UnsafeRawBufferPointer(second.storage))
  }

  /// The first `count` bytes of another, which has as many at least.
  init(_ other: SecretBytes, prefix count: Int) {
    unsafe storage = .allocate(capacity: count)
    _ = unsafe storage.initialize(from: other.storage.prefix(count))
  }

  deinit {
    unsafe OPENSSL_cleanse(storage.baseAddress, storage.count)
    unsafe storage.deallocate()
  }

  /// Lends the bytes for the length of `body`. They must not be kept.
  func withBytes<Result, Failure>(
    _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe body(UnsafeBufferPointer(storage))
  }

  /// Whether `other` holds the same bytes, in a time that depends on the length alone (CRYPTO_memcmp(3)).
  package func matches(_ other: some Collection<UInt8>) -> Bool {
    let candidate = Array(other)
    guard candidate.count == count else { return false }
    return unsafe CRYPTO_memcmp(storage.baseAddress, candidate, count) == 0
  }

  /// Whether both hold the same bytes, in a time that depends on the length alone.
  func matches(_ other: SecretBytes) -> Bool {
    guard other.count == count else { return false }
    return unsafe CRYPTO_memcmp(storage.baseAddress, other.storage.baseAddress, count) == 0
  }
}
