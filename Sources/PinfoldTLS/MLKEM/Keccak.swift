import COpenSSL

/// The SHA-3 functions ML-KEM is built on (FIPS 202), through EVP.
@safe struct Keccak: Sendable {
  // An EVP_MD never changes after it was fetched; it lives as long as the process.
  private nonisolated(unsafe) let algorithm: OpaquePointer?

  private init(_ name: String) {
    unsafe algorithm = EVP_MD_fetch(nil, name, nil)
    ErrorQueue.clear()
  }

  static let sha3x256 = Keccak("SHA3-256")
  static let sha3x512 = Keccak("SHA3-512")
  static let shake128 = Keccak("SHAKE128")
  static let shake256 = Keccak("SHAKE256")

  /// The fixed-length hash of all bytes: EVP_Digest(3).
  func hash(_ bytes: [UInt8]) throws(TLSError) -> [UInt8] {
    guard let algorithm = unsafe algorithm else { throw .failed(call: "EVP_MD_fetch", detail: "no SHA-3") }
    ErrorQueue.clear()
    var succeeded = false
    let output = unsafe [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { output, count in
      var length: UInt32 = 0
      succeeded = unsafe EVP_Digest(bytes, bytes.count, output.baseAddress, &length, algorithm, nil) == 1
      count = succeeded ? Int(length) : 0
    }
    guard succeeded else { throw .drained("EVP_Digest") }
    return output
  }

  /// The first `count` bytes of the extendable output over all bytes: EVP_DigestFinalXOF(3).
  func output(_ bytes: [UInt8], count: Int) throws(TLSError) -> [UInt8] {
    guard let algorithm = unsafe algorithm else { throw .failed(call: "EVP_MD_fetch", detail: "no SHAKE") }
    ErrorQueue.clear()
    guard let context = unsafe EVP_MD_CTX_new() else { throw .drained("EVP_MD_CTX_new") }
    defer { unsafe EVP_MD_CTX_free(context) }
    var output = [UInt8](repeating: 0, count: count)
    guard unsafe EVP_DigestInit_ex(context, algorithm, nil) == 1,
      unsafe EVP_DigestUpdate(context, bytes, bytes.count) == 1,
      unsafe EVP_DigestFinalXOF(context, &output, count) == 1
    else { throw .drained("EVP_DigestFinalXOF") }
    return output
  }
}
