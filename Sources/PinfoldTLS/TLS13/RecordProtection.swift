import COpenSSL

/// One direction of protected TLS 1.3 records (RFC 8446 §5.2–5.3), through EVP's AEAD ciphers.
///
/// Owns the key and counts the records. Not Sendable: for one handshake on one thread.
@safe package final class RecordProtection {
  /// Bytes of plaintext and content type of a record, at most (RFC 8446 §5.4).
  static let innerLimit = (1 << 14) + 1
  /// Records one object may open or seal: a held flight of 256 KiB has fewer even in one-byte records.
  private static let recordLimit: UInt64 = 1 << 20

  private let suite: Suite13
  private let key: SecretBytes
  private let iv: SecretBytes
  private var sequence: UInt64 = 0
  private let cipher: OpaquePointer

  /// Derives key and IV from a handshake traffic secret, which must have the length of the suite's hash. Throws
  /// `unreadable` for another length and `failed` when OpenSSL is out of means.
  package init(_ suite: Suite13, secret: SecretBytes) throws(TLSError) {
    guard secret.count == suite.hashCount else { throw .unreadable("a traffic secret of a wrong length") }
    (key, iv) = try KeySchedule13(suite).recordKeys(of: secret)
    self.suite = suite
    guard let cipher = unsafe suite.cipher.raw else {
      throw .failed(call: "EVP_CIPHER_fetch", detail: "no \(suite.cipherName)")
    }
    unsafe self.cipher = cipher
  }

  /// Whether a record was opened or sealed: its tag was right, whatever stood in it.
  var hasWorked: Bool { sequence > 0 }

  /// Opens one record: `header` are its five bytes, `body` what follows. Answers the content without padding and its
  /// type; nil when the tag is wrong, when there is no content type, or when the content is too long.
  func open(header: [UInt8], body: ArraySlice<UInt8>) -> (type: UInt8, content: ArraySlice<UInt8>)? {
    guard body.count > suite.tagCount, sequence < Self.recordLimit else { return nil }
    let tag = Array(body.suffix(suite.tagCount))
    guard let inner = run(Array(body.dropLast(suite.tagCount)), header, tag: tag)?.output else { return nil }
    sequence += 1
    guard inner.count <= Self.innerLimit, let last = inner.lastIndex(where: { $0 != 0 }) else { return nil }
    return (inner[last], inner[..<last])
  }

  /// Seals `content` of this type into a whole record without padding; nil when EVP fails or the content is too long.
  package func seal(type: UInt8, content: [UInt8]) -> [UInt8]? {
    guard content.count < Self.innerLimit, sequence < Self.recordLimit else { return nil }
    let count = content.count + 1 + suite.tagCount
    let header: [UInt8] = [23, 3, 3, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
    guard let sealed = run(content + [type], header, tag: nil) else { return nil }
    sequence += 1
    return header + sealed.output + sealed.tag
  }

  /// Opens where a tag is given, else seals. EVP_EncryptInit(3), "AEAD Interface".
  private func run(_ input: [UInt8], _ header: [UInt8], tag: [UInt8]?) -> (output: [UInt8], tag: [UInt8])? {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
    defer { unsafe EVP_CIPHER_CTX_free(context) }
    let direction: Int32 = tag == nil ? 1 : 0
    let tagCount = Int32(suite.tagCount)
    var tag = tag ?? []
    let isSealing = tag.isEmpty
    guard unsafe EVP_CipherInit_ex2(context, cipher, nil, nil, direction, nil) == 1,
      unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 12, nil) == 1
    else { return nil }
    if !isSealing {
      guard unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tagCount, &tag) == 1 else { return nil }
    } else if suite.isCCM {
      guard unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tagCount, nil) == 1 else { return nil }
    }
    let keyed = unsafe key.withBytes { key in
      unsafe EVP_CipherInit_ex2(context, nil, key.baseAddress, nonce(), direction, nil) == 1
    }
    guard keyed else { return nil }
    var count: Int32 = 0
    var output = [UInt8](repeating: 0, count: input.count + 16)
    let inputCount = Int32(truncatingIfNeeded: input.count)
    if suite.isCCM {
      guard unsafe EVP_CipherUpdate(context, nil, &count, nil, inputCount) == 1 else { return nil }
    }
    guard unsafe EVP_CipherUpdate(context, nil, &count, header, Int32(header.count)) == 1,
      unsafe EVP_CipherUpdate(context, &output, &count, input, inputCount) == 1, Int(count) == input.count
    else { return nil }
    var rest: Int32 = 0
    var ending = [UInt8](repeating: 0, count: 32)
    // CCM has verified its tag with the data already; there is no final call to make when opening.
    if isSealing || !suite.isCCM {
      guard unsafe EVP_CipherFinal_ex(context, &ending, &rest) == 1, rest == 0 else { return nil }
    }
    output.removeLast(output.count - input.count)
    guard isSealing else { return (output, []) }
    tag = [UInt8](repeating: 0, count: suite.tagCount)
    guard unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, tagCount, &tag) == 1 else { return nil }
    return (output, tag)
  }

  /// The IV with the record number added in its last eight bytes (RFC 8446 §5.3).
  private func nonce() -> [UInt8] {
    var nonce = unsafe iv.withBytes { unsafe Array($0) }
    for index in 0..<8 {
      nonce[11 - index] ^= UInt8(truncatingIfNeeded: sequence >> UInt64(8 * index))
    }
    return nonce
  }
}
