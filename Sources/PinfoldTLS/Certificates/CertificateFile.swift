import COpenSSL

/// Reads the certificates of a file an operator names: PEM with any number of them, or one in DER.
package enum CertificateFile {
  /// Largest file taken, in bytes: more than any system's whole set of authorities.
  package static let byteLimit = 4 << 20

  /// The certificates in `path`, leaf first, the others in the file's order. The leaf is the one that is no
  /// authority and signed none of the others; where that names no single one, the file's order stands.
  ///
  /// Throws `failed` if the file cannot be read, `unreadable` if it holds no certificate or a broken one.
  package static func read(_ path: String) throws(TLSError) -> [Certificate] {
    ErrorQueue.clear()
    guard let file = unsafe BIO_new_file(path, "rb") else {
      throw .failed(call: "opening \(path)", detail: ErrorQueue.drain())
    }
    defer { unsafe BIO_free(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = Int(unsafe BIO_read(file, &chunk, Int32(chunk.count)))
      guard count > 0 else { break }
      bytes += chunk[..<count]
      guard bytes.count <= byteLimit else { throw .tooLarge("\(path): more than \(byteLimit) bytes") }
    }
    do throws(TLSError) {
      return try leafFirst(certificates(in: bytes))
    } catch {
      throw .unreadable("\(path): \(error)")
    }
  }

  /// The certificates in PEM or DER bytes, in their order.
  package static func certificates(in bytes: [UInt8]) throws(TLSError) -> [Certificate] {
    if bytes.first == 0x30 { return [try Certificate(der: bytes)] }
    guard let count = Int32(exactly: bytes.count) else { throw .tooLarge("more than 2 GiB") }
    ErrorQueue.clear()
    guard let memory = unsafe BIO_new_mem_buf(bytes, count) else { throw .drained("BIO_new_mem_buf") }
    defer { unsafe BIO_free(memory) }
    var found: [Certificate] = []
    while let certificate = unsafe PEM_read_bio_X509(memory, nil, nil, nil) {
      defer { unsafe X509_free(certificate) }
      found.append(try unsafe Certificate(copying: certificate))
    }
    let last = ERR_peek_last_error()
    ErrorQueue.clear()
    let endReached = last & 0x7f_ffff == UInt(PEM_R_NO_START_LINE)
    guard !found.isEmpty, endReached else {
      throw .unreadable(
        found.isEmpty ? "no certificate found; expected PEM or DER" : "certificate \(found.count + 1) is broken")
    }
    return found
  }

  /// The leaf in front, the others as they were.
  static func leafFirst(_ certificates: [Certificate]) -> [Certificate] {
    let leaves = certificates.indices.filter { index in
      let candidate = certificates[index]
      return !candidate.isAuthority
        && !certificates.indices.contains { $0 != index && certificates[$0].isIssued(by: candidate) }
    }
    guard leaves.count == 1, let leaf = leaves.first, leaf > 0 else { return certificates }
    var sorted = certificates
    sorted.insert(sorted.remove(at: leaf), at: 0)
    return sorted
  }
}
