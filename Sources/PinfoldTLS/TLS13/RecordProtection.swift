import COpenSSL

/// One direction of protected TLS 1.3 records (RFC 8446 §5.2–5.3), through EVP's AEAD ciphers.
///
/// Owns an `EVP_CIPHER_CTX` with the key, which is zeroed when it is freed, and counts the records. Not Sendable: for one
/// handshake on one thread.
@safe package final class RecordProtection {
  /// What is done to records.
  package enum Direction: Int32, Sendable {
    case opening = 0
    case sealing = 1
  }

  /// Bytes of plaintext and content type of a record, at most (RFC 8446 §5.4).
  static let innerLimit = (1 << 14) + 1
  /// Bytes of a record's header, which the tag covers too.
  private static let headerCount = 5
  private static let nonceCount = 12
  /// Records one object may open or seal: a held flight of 256 KiB has fewer even in one-byte records.
  private static let recordLimit: UInt64 = 1 << 20

  private let suite: Suite13
  private let direction: Direction
  private let iv: SecretBytes
  private var sequence: UInt64 = 0
  private let context: OpaquePointer

  /// Derives key and IV from a handshake traffic secret, which must have the length of the suite's hash. Throws
  /// `unreadable` for another length and `failed` when OpenSSL is out of means.
  package convenience init(_ suite: Suite13, secret: SecretBytes, _ direction: Direction) throws(TLSError) {
    try self.init(try DerivationKey(secret, suite), direction)
  }

  /// The same for a traffic secret that was made ready to derive from.
  init(_ secret: DerivationKey, _ direction: Direction) throws(TLSError) {
    suite = secret.suite
    self.direction = direction
    let key: SecretBytes
    (key, iv) = try secret.recordKeys()
    ErrorQueue.clear()
    guard let cipher = unsafe suite.cipher.raw else {
      throw .failed(call: "EVP_CIPHER_fetch", detail: "no \(suite.cipherName)")
    }
    guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .drained("EVP_CIPHER_CTX_new") }
    unsafe self.context = context
    // The tag's length is part of what CCM makes of its key.
    let hasKey = unsafe key.withBytes { key in
      unsafe EVP_CipherInit_ex2(context, cipher, nil, nil, direction.rawValue, nil) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(Self.nonceCount), nil) == 1
        && (!suite.isCCM
          || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(suite.tagCount), nil) == 1)
        && EVP_CipherInit_ex2(context, nil, key.baseAddress, nil, direction.rawValue, nil) == 1
    }
    guard hasKey else { throw .drained("EVP_CipherInit_ex2") }
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  /// Whether a record was opened or sealed: its tag was right, whatever stood in it.
  var hasWorked: Bool { sequence > 0 }

  /// Opens one record, its header in front. Answers the content without padding and its type; nil when the tag is wrong,
  /// when there is no content type, or when the content is too long, and where this was made for sealing.
  func open(_ record: ArraySlice<UInt8>) -> (type: UInt8, content: ArraySlice<UInt8>)? {
    let innerCount = record.count - Self.headerCount - suite.tagCount
    guard direction == .opening, innerCount > 0, sequence < Self.recordLimit else { return nil }
    let tagStart = Self.headerCount + innerCount
    let opened = unsafe record.withUnsafeBufferPointer { record in
      unsafe run(
        Bytes(rebasing: record[Self.headerCount..<tagStart]), header: Bytes(rebasing: record[..<Self.headerCount]),
        tag: Bytes(rebasing: record[tagStart...]))
    }
    guard let inner = opened else { return nil }
    sequence += 1
    guard inner.count <= Self.innerLimit, let last = inner.lastIndex(where: { $0 != 0 }) else { return nil }
    return (inner[last], inner[..<last])
  }

  /// Seals `content` of this type into a whole record without padding; nil when EVP fails or the content is too long, and
  /// where this was made for opening.
  package func seal(type: UInt8, content: [UInt8]) -> [UInt8]? {
    guard direction == .sealing, content.count < Self.innerLimit, sequence < Self.recordLimit else { return nil }
    let count = content.count + 1 + suite.tagCount
    let header: [UInt8] = [23, 3, 3, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
    let inner = content + [type]
    let sealed = unsafe inner.withUnsafeBufferPointer { inner in
      unsafe header.withUnsafeBufferPointer { header in unsafe run(inner, header: header, tag: nil) }
    }
    guard let sealed else { return nil }
    sequence += 1
    return header + sealed
  }

  private typealias Bytes = UnsafeBufferPointer<UInt8>

  /// Opens what has this tag, or seals, and the tag stands behind the output. EVP_EncryptInit(3), "AEAD Interface".
  private func run(_ input: Bytes, header: Bytes, tag: Bytes?) -> [UInt8]? {
    var succeeded = false
    let output = unsafe [UInt8](unsafeUninitializedCapacity: input.count + suite.tagCount) { output, count in
      guard let start = output.baseAddress,
        unsafe begin(inputCount: input.count, tag: tag) && process(input, header: header, into: start)
      else { return }
      count = input.count
      if direction == .sealing {
        let (end, tagCount) = unsafe (start + count, suite.tagCount)
        guard unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagCount), end) == 1 else { return }
        count += tagCount
      }
      succeeded = true
    }
    if !succeeded { ErrorQueue.clear() }
    return succeeded ? output : nil
  }

  /// Sets what is a record's own: nonce, tag, and for CCM the length.
  private func begin(inputCount: Int, tag: Bytes?) -> Bool {
    let hasNonce = unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.nonceCount) { nonce in
      unsafe fill(nonce)
      return unsafe EVP_CipherInit_ex2(context, nil, nil, nonce.baseAddress, direction.rawValue, nil) == 1
    }
    guard hasNonce else { return false }
    if suite.isCCM || direction == .opening {
      // It is only read, though the call's type allows more.
      let expected = unsafe UnsafeMutableRawPointer(mutating: tag?.baseAddress)
      guard unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(suite.tagCount), expected) == 1 else {
        return false
      }
    }
    var count: Int32 = 0
    return unsafe !suite.isCCM || EVP_CipherUpdate(context, nil, &count, nil, Int32(inputCount)) == 1
  }

  private func process(_ input: Bytes, header: Bytes, into output: UnsafeMutablePointer<UInt8>) -> Bool {
    var count: Int32 = 0
    guard unsafe EVP_CipherUpdate(context, nil, &count, header.baseAddress, Int32(header.count)) == 1,
      unsafe EVP_CipherUpdate(context, output, &count, input.baseAddress, Int32(input.count)) == 1,
      Int(count) == input.count
    else { return false }
    // CCM has verified its tag with the data already; there is no final call to make when opening.
    guard direction == .sealing || !suite.isCCM else { return true }
    var rest: Int32 = 0
    return unsafe EVP_CipherFinal_ex(context, output + input.count, &rest) == 1 && rest == 0
  }

  /// The IV with the record number added in its last eight bytes (RFC 8446 §5.3).
  private func fill(_ nonce: UnsafeMutableBufferPointer<UInt8>) {
    unsafe iv.withBytes { unsafe _ = nonce.initialize(from: $0) }
    for index in 0..<8 {
      unsafe nonce[Self.nonceCount - 1 - index] ^= UInt8(truncatingIfNeeded: sequence >> UInt64(8 * index))
    }
  }
}
