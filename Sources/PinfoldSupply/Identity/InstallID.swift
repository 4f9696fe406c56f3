package import PinfoldCrypto
import PinfoldModel

/// What tells this installation from others, for rollouts by `install_id`: 16 random bytes as 32 hexadecimal digits in
/// `install.id` of the state directory (mode 0600), made at the first start.
package struct InstallID: Sendable {
  /// The file's name in the state directory.
  package static let fileName = "install.id"
  private static let byteCount = 16

  /// The id.
  package let text: String

  /// Reads the id; `nil` when there is none yet. Throws for a file that cannot be read or holds something else: it is
  /// left alone, since another id would move the instance from one side of a rollout to the other.
  package init?(stateDirectory: String) throws(InstallIDError) {
    let path = Self.path(stateDirectory)
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try PrivateFile.read(path, limit: Self.byteCount * 2 + 1).bytes
    } catch {
      if error.isMissing { return nil }
      if case .tooLarge = error { throw .damaged(path: path) }
      throw .file(error)
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard let id = Hex.decode(text.dropLast()), id.count == Self.byteCount, text == Hex.encode(id) + "\n" else {
      throw .damaged(path: path)
    }
    self.text = Hex.encode(id)
  }

  /// Reads the id, or makes one where there is none.
  package static func loadOrCreate(stateDirectory: String) throws(InstallIDError) -> InstallID {
    if let known = try InstallID(stateDirectory: stateDirectory) { return known }
    let text: String
    do throws(CryptoError) { text = Hex.encode(try Random.bytes(byteCount)) } catch { throw .noRandomness(error) }
    do throws(FileError) {
      try PrivateFile.makeDirectory(stateDirectory)
      try PrivateFile.create(path(stateDirectory), bytes: Array("\(text)\n".utf8))
    } catch {
      // Another process was quicker: its id is the one.
      if error.isOccupied, let known = try InstallID(stateDirectory: stateDirectory) { return known }
      throw .file(error)
    }
    return InstallID(text: text)
  }

  private init(text: String) { self.text = text }

  private static func path(_ directory: String) -> String { "\(directory)/\(fileName)" }
}

/// Why the installation's id is not known.
package enum InstallIDError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file cannot be read, or not be made.
  case file(FileError)
  /// The file holds something else.
  case damaged(path: String)
  /// The system gives no random bytes.
  case noRandomness(CryptoError)

  /// One line that says what it means.
  package var description: String {
    let meaning = "install_id is not known, and rollouts by it are for this instance"
    switch self {
    case .file(let error): return "\(error); \(meaning)"
    case .damaged(let path): return "\(path): not 32 hexadecimal digits and a newline; \(meaning)"
    case .noRandomness(let error): return "\(error); \(meaning)"
    }
  }
}
