package import PinfoldConfig
import PinfoldCrypto
import PinfoldWire
import Synchronization

/// The users of `access.credentials_file`: lines `user:$argon2id$…`, as `pinfold passwd` writes them. Empty lines, and
/// those that begin with `#`, are left alone. Immutable; a reload makes another one.
package final class CredentialList: Sendable {
  /// Bytes of a file: some twenty thousand users.
  package static let byteLimit = 4 << 20

  private struct User: Sendable {
    let hash: PasswordHash
    /// Place in `decoys` of the one with the same costs.
    let decoy: Int
  }

  private static let generations = Atomic<UInt64>(0)

  /// Differs between any two lists of this process: what was found by one says nothing by another.
  let generation = CredentialList.generations.add(1, ordering: .relaxed).newValue
  /// By the bytes of the name: two spellings of a letter are two names.
  private let users: [[UInt8]: User]
  private let order: [[UInt8]]
  private let decoys: [PasswordHash]
  /// What weakens the list, one line each.
  package let warnings: [String]
  /// Number of users.
  package var count: Int { users.count }

  /// Reads the file that the configuration names in `access.credentials_file`; `nil` where it names none.
  package static func load(_ configuration: Configuration, file: String) throws(FileErrors) -> CredentialList? {
    guard let path = configuration.access.credentialsFile else { return nil }
    let contents: PrivateFile.Contents
    do throws(FileError) {
      contents = try PrivateFile.read(path, limit: byteLimit)
    } catch {
      let advice = error.isMissing ? "; make one with pinfold passwd -f FILE USER" : ""
      throw FileErrors(
        file: file, [Complaint(at: nil, path: "access.credentials_file", error.description + advice)])
    }
    return try CredentialList(contents.bytes, file: path, mode: contents.mode)
  }

  /// Reads the contents of a file. Every line that is none is a complaint with its number, and says nothing of what
  /// stands there.
  init(_ bytes: [UInt8], file: String, mode: UInt32 = 0o600) throws(FileErrors) {
    var reader = Reader()
    for (index, line) in bytes.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated() {
      if let problem = reader.take(line) {
        reader.complaints.append(Complaint(at: SourcePlace(line: index + 1, column: 1), path: "", problem))
      }
    }
    if reader.order.isEmpty, reader.complaints.isEmpty {
      reader.complaints.append(Complaint(at: nil, path: "", "no user in it; pinfold passwd adds one"))
    }
    guard reader.complaints.isEmpty else {
      throw FileErrors(file: file, Array(reader.complaints.prefix(Reader.complaintLimit)))
    }
    do throws(CryptoError) {
      decoys = try reader.costs.map { hash throws(CryptoError) in try hash.decoy() }
    } catch {
      throw FileErrors(file: file, [Complaint(at: nil, path: "", error.description)])
    }
    users = reader.users
    order = reader.order
    warnings =
      mode & 0o007 == 0
      ? [] : ["\(file): everybody may read the hashes (mode 0\(String(mode & 0o777, radix: 8))); chmod 600 it"]
  }

  /// Whether the user is in the list with this password. An unknown one costs the time of a known one. Blocks for that
  /// time: not for a worker.
  func admits(_ user: String, _ password: SecretBytes) -> Bool {
    guard let (hash, isKnown) = hash(for: user) else { return false }
    let matches = hash.matches(password)
    return isKnown && matches
  }

  /// What a user's password is checked against: the user's own hash, or for an unknown user the decoy of a known one, so
  /// that the work is the same.
  func hash(for user: String) -> (hash: PasswordHash, isKnown: Bool)? {
    let name = Array(user.utf8)
    if let known = users[name] { return (known.hash, true) }
    guard !order.isEmpty else { return nil }
    // The same unknown name always costs the same, as a known one does.
    let place = Int(UInt(bitPattern: name.hashValue) % UInt(order.count))
    return users[order[place]].map { (decoys[$0.decoy], false) }
  }

  /// What is gathered line by line.
  private struct Reader {
    static let complaintLimit = 50

    var users: [[UInt8]: User] = [:]
    var order: [[UInt8]] = []
    /// One hash of each costs.
    var costs: [PasswordHash] = []
    var complaints: [Complaint] = []

    /// Returns what is wrong with the line.
    mutating func take(_ line: ArraySlice<UInt8>) -> String? {
      guard let first = line.first, first != 0x23 else { return nil }
      guard let colon = line.firstIndex(of: 0x3a) else {
        return "expected user:$argon2id$…, as pinfold passwd writes it"
      }
      let name = Array(line[..<colon])
      guard BasicCredentials.isUserName(name) else {
        return
          "the user's name has to have 1 to \(BasicCredentials.userLimit) bytes of UTF-8 without control characters"
      }
      guard let text = String(validating: line[(colon + 1)...], as: UTF8.self), let hash = PasswordHash(text) else {
        return "behind the user's name stands no Argon2id hash, as pinfold passwd writes it"
      }
      guard users[name] == nil else { return "this user has a line already" }
      let place = costs.firstIndex { $0.costs == hash.costs } ?? costs.count
      if place == costs.count { costs.append(hash) }
      users[name] = User(hash: hash, decoy: place)
      order.append(name)
      return nil
    }
  }
}
