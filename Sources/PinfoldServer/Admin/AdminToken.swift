import PinfoldCrypto
import PinfoldModel

/// The secret that a request has to show which changes something: 32 random bytes as 64 hexadecimal digits, in
/// `admin.token` of the state directory (mode 0600). Another one with each start.
struct AdminToken: Sendable {
  /// The file's name in the state directory.
  static let fileName = "admin.token"
  private static let byteCount = 32

  private let digits: SecretBytes

  /// Draws a token and writes its file. Throws when it cannot be written: then nothing can be changed by request.
  init(stateDirectory: String) throws(CryptoError) {
    let text = Hex.encode(try Random.bytes(Self.byteCount))
    digits = try SecretBytes(copying: Array(text.utf8))
    do throws(FileError) {
      try PrivateFile.makeDirectory(stateDirectory)
      try PrivateFile.replace("\(stateDirectory)/\(Self.fileName)", bytes: Array("\(text)\n".utf8))
    } catch {
      throw .file(error)
    }
  }

  /// Whether an Authorization field is `Bearer` with this token (RFC 6750 §2.1). Takes as long for a wrong token as for
  /// the right one.
  func admits(_ authorization: String?) -> Bool {
    let scheme = "bearer "
    guard let authorization, authorization.utf8.count > scheme.utf8.count,
      authorization.prefix(scheme.count).lowercased() == scheme
    else { return false }
    let shown = Array(authorization.utf8.dropFirst(scheme.utf8.count))
    return digits.withBytes { constantTimeEqual($0, shown.span) }
  }
}
