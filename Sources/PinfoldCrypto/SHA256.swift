import CSodium
package import PinfoldModel

/// SHA-256 (FIPS 180-4) through crypto_hash_sha256(3), at once or piece by piece.
package struct SHA256: Sendable {
  private var state = crypto_hash_sha256_state()

  /// Starts an empty hash.
  package init() { unsafe crypto_hash_sha256_init(&state) }

  /// Takes more bytes.
  package mutating func update(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      _ = unsafe crypto_hash_sha256_update(&state, buffer.baseAddress, UInt64(buffer.count))
    }
  }

  /// The digest of all bytes taken.
  package consuming func finish() -> Digest256 {
    var copy = state
    return unsafe Digest256(filling: { output in unsafe crypto_hash_sha256_final(&copy, output) })
  }

  /// The digest of `bytes`.
  package static func digest(_ bytes: Span<UInt8>) -> Digest256 {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe Digest256(filling: { output in unsafe crypto_hash_sha256(output, buffer.baseAddress, UInt64(buffer.count))
      })
    }
  }

  /// The digest of `bytes`.
  package static func digest(_ bytes: [UInt8]) -> Digest256 { digest(bytes.span) }
}

extension Digest256 {
  /// The 32 bytes that `fill` writes; libsodium's hashes always do, so their answer is not looked at.
  init(filling fill: (UnsafeMutablePointer<UInt8>) -> Int32) {
    var bytes = [32 of UInt8](repeating: 0)
    var span = bytes.mutableSpan
    unsafe span.withUnsafeMutableBufferPointer { buffer in
      if let base = buffer.baseAddress { _ = unsafe fill(base) }
    }
    self.init(bytes)
  }
}
