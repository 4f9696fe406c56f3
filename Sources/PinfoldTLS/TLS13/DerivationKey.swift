import COpenSSL

/// A secret of the key schedule that others are derived from: HKDF's pseudorandom key (RFC 5869 §2, RFC 8446 §7.1),
/// through EVP_MAC-HMAC(7).
///
/// The secret is worked into the hash once, however many keys are derived. Owns an `EVP_MAC_CTX`, which zeroes what it
/// holds when it is freed. Not Sendable: for one handshake on one thread.
@safe final class DerivationKey {
  /// The suite whose hash is used.
  let suite: Suite13
  private let context: OpaquePointer
  /// Whether a code was made, after which the context is to begin anew.
  private var isUsed = false

  /// What each context is copied from. One that is set up anew has EVP look the digest up by its name, which takes longer
  /// than all that is then computed.
  @safe private struct Template: Sendable {
    // Copying does not change it; it lives as long as the process.
    nonisolated(unsafe) let raw: OpaquePointer?
    init(_ suite: Suite13) {
      unsafe raw = pinfold_hmac(suite.digestName)
      ErrorQueue.clear()
    }
  }
  private static let sha256 = Template(.aes128GCM)
  private static let sha384 = Template(.aes256GCM)

  /// The secret has to have the length of the suite's hash, as every secret of the schedule has. Throws `unreadable` for
  /// another length and `failed` when OpenSSL is out of means.
  init(_ secret: SecretBytes, _ suite: Suite13) throws(TLSError) {
    guard secret.count == suite.hashCount else { throw .unreadable("a secret of a wrong length") }
    self.suite = suite
    let template = suite == .aes256GCM ? Self.sha384 : Self.sha256
    guard let template = unsafe template.raw else { throw .failed(call: "EVP_MAC_fetch", detail: "no HMAC") }
    guard let context = unsafe EVP_MAC_CTX_dup(template) else { throw .drained("EVP_MAC_CTX_dup") }
    unsafe self.context = context
    let isKeyed = unsafe secret.withBytes { unsafe EVP_MAC_init(context, $0.baseAddress, $0.count, nil) == 1 }
    guard isKeyed else { throw .drained("EVP_MAC_init") }
  }

  deinit { unsafe EVP_MAC_CTX_free(context) }

  /// HKDF-Expand-Label. `count`: bytes wanted, at most those of the hash; everything that protects a handshake is no
  /// longer, so that one block is all there is to expand.
  func expand(_ label: StaticString, context: [UInt8] = [], count: Int) throws(TLSError) -> SecretBytes {
    let name = unsafe UnsafeBufferPointer(start: label.utf8Start, count: label.utf8CodeUnitCount)
    guard count <= suite.hashCount, name.count <= 249, context.count <= 255 else {
      throw .unreadable("more than one block of keys")
    }
    var message: [UInt8] = []
    message.reserveCapacity(4 + 6 + name.count + context.count + 1)
    message += [0, UInt8(count), UInt8(6 + name.count)]
    message += "tls13 ".utf8
    unsafe message.append(contentsOf: name)
    message.append(UInt8(context.count))
    message += context
    // The number of HKDF's first block.
    message.append(1)
    let block = try unsafe message.withUnsafeBufferPointer { (bytes) throws(TLSError) in try unsafe code(of: bytes) }
    return count == block.count ? block : SecretBytes(block, prefix: count)
  }

  /// HMAC of a message.
  func code(of message: UnsafeBufferPointer<UInt8>) throws(TLSError) -> SecretBytes {
    // Without a key it begins anew under the one it has (EVP_MAC(3)).
    let begun = unsafe !isUsed || EVP_MAC_init(context, nil, 0, nil) == 1
    isUsed = true
    let code = unsafe SecretBytes(count: suite.hashCount) { output in
      var count = 0
      return unsafe begun && EVP_MAC_update(context, message.baseAddress, message.count) == 1
        && EVP_MAC_final(context, output.baseAddress, &count, output.count) == 1 && count == output.count
    }
    guard let code else { throw .drained("EVP_MAC_final") }
    return code
  }
}
