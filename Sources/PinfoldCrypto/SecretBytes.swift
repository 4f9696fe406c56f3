import CSodium

/// Secret bytes in guarded memory: locked where the system allows it, kept out of core dumps, between guard pages,
/// read-only once filled, and zeroed when the last owner lets go (sodium_malloc(3)).
@safe package final class SecretBytes: Sendable, CustomStringConvertible {
  /// Number of bytes.
  package let count: Int

  /// Owned by this object alone. Sound across threads: written only by the initialiser, read-only afterwards (the
  /// memory protection enforces it), freed by `deinit` alone.
  nonisolated(unsafe) private let base: UnsafeMutablePointer<UInt8>

  /// Allocates `count` bytes and lets `fill` write them, once.
  init(count: Int, fill: (UnsafeMutablePointer<UInt8>) throws(CryptoError) -> Void) throws(CryptoError) {
    try Sodium.start()
    guard count >= 0, let memory = unsafe sodium_malloc(count) else { throw .secureMemoryUnavailable }
    self.count = count
    let bytes = unsafe memory.bindMemory(to: UInt8.self, capacity: count)
    unsafe base = bytes
    try unsafe fill(bytes)
    unsafe sodium_mprotect_readonly(memory)
  }

  /// Random bytes from the system's generator.
  package convenience init(randomCount count: Int) throws(CryptoError) {
    try unsafe self.init(count: count) { unsafe randombytes_buf($0, count) }
  }

  /// Copies `bytes`; the caller's own copy is the caller's to zero.
  package convenience init(copying bytes: [UInt8]) throws(CryptoError) {
    try unsafe self.init(count: bytes.count) { output in
      for index in 0..<bytes.count { unsafe output[index] = bytes[index] }
    }
  }

  deinit { unsafe sodium_free(base) }

  /// Lends the bytes for one call. They must not be copied out into ordinary memory.
  package func withBytes<Value, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try body(unsafe Span(_unsafeStart: base, count: count))
  }

  /// Lends the bytes to a C call.
  func withPointer<Value>(_ body: (UnsafePointer<UInt8>) -> Value) -> Value {
    unsafe body(UnsafePointer(base))
  }

  /// Says nothing of the contents, so that no log line or crash report can.
  package var description: String { "(\(count) secret bytes)" }
}
