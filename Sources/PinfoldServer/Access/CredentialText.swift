import PinfoldWire

/// What a line of the credentials file may hold, for those who write one.
package enum CredentialText {
  /// Whether the bytes may be a user's name.
  package static func isUser(_ bytes: [UInt8]) -> Bool { BasicCredentials.isUserName(bytes) }

  /// Whether the bytes may be a password: a client could not send others (RFC 7617 §2).
  package static func isPassword(_ bytes: [UInt8]) -> Bool { BasicCredentials.isPrintable(bytes[...]) }

  /// The contents of the file with this user's line, and no other, replaced; put behind the others where there is none;
  /// taken out when `hash` is `nil`. `nil` when there is none to take out.
  package static func setting(_ user: [UInt8], to hash: String?, in contents: [UInt8]) -> [UInt8]? {
    var result: [UInt8] = []
    var isDone = false
    var rest = contents[...]
    while !rest.isEmpty {
      let end = rest.firstIndex(of: 0x0a).map { $0 + 1 } ?? rest.endIndex
      let line = rest[..<end]
      rest = rest[end...]
      guard line.starts(with: user + [0x3a]) else {
        result += line
        continue
      }
      if let hash, !isDone { result += user + [0x3a] + Array(hash.utf8) + [0x0a] }
      isDone = true
    }
    guard !isDone else { return result }
    guard let hash else { return nil }
    if let last = result.last, last != 0x0a { result.append(0x0a) }
    return result + user + [0x3a] + Array(hash.utf8) + [0x0a]
  }
}
