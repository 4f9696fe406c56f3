import CSodium

/// The one format of secret key files: two lines of ASCII, each ended by a newline.
///
///     pinfold-ed25519-secret-key v1
///     (standard base64 of the secret, with padding)
///
/// The first line names the kind, so that a sealing key is never taken for a signing key; nothing may follow the
/// second. The secret passes through guarded memory only.
struct KeyFile {
  /// Far above any key file; what is larger was never one.
  private static let sizeLimit = 4096

  private let firstLine: String
  private let byteCount: Int

  /// `kind` names the secret; `byteCount` is its length in bytes.
  init(kind: String, byteCount: Int) {
    firstLine = "\(kind) v1\n"
    self.byteCount = byteCount
  }

  private var textByteCount: Int { (byteCount + 2) / 3 * 4 }
  private var fileByteCount: Int { firstLine.utf8.count + textByteCount + 1 }

  /// Makes a new file of mode 0600.
  func create(_ path: String, secret: SecretBytes) throws(CryptoError) {
    let head = Array(firstLine.utf8)
    let contents = try unsafe SecretBytes(count: fileByteCount) { output in
      unsafe output.update(from: head, count: head.count)
      unsafe (output + head.count).withMemoryRebound(to: CChar.self, capacity: textByteCount + 1) { text in
        // The terminating NUL falls on the newline's place.
        _ = unsafe secret.withPointer {
          unsafe sodium_bin2base64(text, textByteCount + 1, $0, secret.count, sodium_base64_VARIANT_ORIGINAL)
        }
      }
      unsafe output[fileByteCount - 1] = 0x0a
    }
    do throws(FileError) {
      try contents.withBytes { bytes throws(FileError) in try PrivateFile.create(path, bytes: bytes) }
    } catch { throw .file(error) }
  }

  /// Reads a file, or makes it with a random secret when there is none.
  func readOrCreate(_ path: String, warnings: inout [String]) throws(CryptoError) -> SecretBytes {
    do throws(CryptoError) {
      return try read(path, warnings: &warnings)
    } catch {
      guard case .file(let fault) = error, fault.isMissing else { throw error }
    }
    let fresh = try SecretBytes(randomCount: byteCount)
    do throws(CryptoError) {
      try create(path, secret: fresh)
      return fresh
    } catch {
      // Another process was quicker: its key is the one.
      guard case .file(let fault) = error, fault.isOccupied else { throw error }
      return try read(path, warnings: &warnings)
    }
  }

  /// Reads a file, adding to `warnings` when its mode lets others in.
  func read(_ path: String, warnings: inout [String]) throws(CryptoError) -> SecretBytes {
    let contents = try SecretBytes(file: path, limit: Self.sizeLimit, warnings: &warnings)
    guard contents.count == fileByteCount else { throw malformed(path) }
    return try decode(contents, path: path)
  }

  private func decode(_ contents: SecretBytes, path: String) throws(CryptoError) -> SecretBytes {
    let head = Array(firstLine.utf8)
    return try unsafe SecretBytes(count: byteCount) { output throws(CryptoError) in
      let isGood = contents.withBytes { bytes in
        guard constantTimeEqual(bytes.extracting(..<head.count), head.span), bytes[bytes.count - 1] == 0x0a else {
          return false
        }
        var decodedCount = 0
        let status = unsafe bytes.extracting(head.count...).withUnsafeBufferPointer { text in
          unsafe text.withMemoryRebound(to: CChar.self) { text in
            guard let base = text.baseAddress else { return Int32(-1) }
            return unsafe sodium_base642bin(
              output, byteCount, base, textByteCount, nil, &decodedCount, nil, sodium_base64_VARIANT_ORIGINAL)
          }
        }
        return status == 0 && decodedCount == byteCount
      }
      guard isGood else { throw malformed(path) }
    }
  }

  private func malformed(_ path: String) -> CryptoError {
    let first = firstLine.dropLast()
    return .keyFile(
      path: path,
      problem: "not a key file of this kind: it has two lines, \"\(first)\" and \(textByteCount) characters of base64")
  }
}
