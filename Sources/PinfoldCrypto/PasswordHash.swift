import CSodium
import PinfoldModel

/// A password's Argon2id hash in the PHC string form of crypto_pwhash_str(3):
/// `$argon2id$v=19$m=65536,t=2,p=1$salt$hash`.
package struct PasswordHash: Equatable, Sendable {
  /// KiB of memory that a hash may ask for: 1 GiB, libsodium's highest preset. Passes at most: four times as many.
  private static let memoryLimit: UInt32 = 1 << 20
  private static let passLimit: UInt32 = 16
  private static let saltCounts = 8...64
  private static let hashCounts = 16...64
  /// Characters of the string without the NUL that libsodium counts too.
  private static let textLimit = Int(crypto_pwhash_STRBYTES) - 1

  /// The PHC string.
  package let text: String
  private let memory: UInt32
  private let passes: UInt32
  private let saltCount: Int
  private let hashCount: Int

  /// Reads a PHC string; `nil` for every other scheme, version or spelling, for more than one lane, and for costs above
  /// 1 GiB or 16 passes.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.textLimit else { return nil }
    let parts = text.split(separator: "$", omittingEmptySubsequences: false)
    guard parts.count == 6, parts[0].isEmpty, parts[1] == "argon2id", parts[2] == "v=19" else { return nil }
    let costs = parts[3].split(separator: ",", omittingEmptySubsequences: false)
    guard costs.count == 3, let memory = Self.number(costs[0], "m="), let passes = Self.number(costs[1], "t="),
      costs[2] == "p=1", (8...Self.memoryLimit).contains(memory), (1...Self.passLimit).contains(passes),
      let salt = Self.decode(parts[4]), Self.saltCounts.contains(salt), let hash = Self.decode(parts[5]),
      Self.hashCounts.contains(hash)
    else { return nil }
    self.text = text
    self.memory = memory
    self.passes = passes
    saltCount = salt
    hashCount = hash
  }

  /// Hashes a password with libsodium's interactive costs: 64 MiB, 2 passes, some 0.1 s.
  package init(of password: SecretBytes) throws(CryptoError) {
    try Sodium.start()
    var output = [CChar](repeating: 0, count: Int(crypto_pwhash_STRBYTES))
    let status = unsafe password.withPointer { pointer in
      unsafe pointer.withMemoryRebound(to: CChar.self, capacity: max(password.count, 1)) {
        unsafe crypto_pwhash_str(
          &output, $0, UInt64(password.count), UInt64(crypto_pwhash_OPSLIMIT_INTERACTIVE),
          Int(crypto_pwhash_MEMLIMIT_INTERACTIVE))
      }
    }
    let text = String(decoding: output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard status == 0, let hash = PasswordHash(text) else { throw .secureMemoryUnavailable }
    self = hash
  }

  /// Whether this is the password's hash. Takes the time and the memory that the hash says, whatever the answer; false
  /// also when that memory cannot be had. Blocks: not for a worker.
  package func matches(_ password: SecretBytes) -> Bool {
    guard (try? Sodium.start()) != nil else { return false }
    // libsodium may look at all of the bytes it would have written itself.
    var string = text.utf8.map { CChar(bitPattern: $0) }
    string += [CChar](repeating: 0, count: Self.textLimit + 1 - string.count)
    return unsafe password.withPointer { pointer in
      unsafe pointer.withMemoryRebound(to: CChar.self, capacity: max(password.count, 1)) {
        unsafe crypto_pwhash_str_verify(string, $0, UInt64(password.count)) == 0
      }
    }
  }

  /// A hash of the same costs that no password is known to have: what an unknown user is checked against.
  package func decoy() throws(CryptoError) -> PasswordHash {
    let salt = Self.encode(try Random.bytes(saltCount))
    let hash = Self.encode(try Random.bytes(hashCount))
    guard let decoy = PasswordHash("$argon2id$v=19$m=\(memory),t=\(passes),p=1$\(salt)$\(hash)") else {
      throw .secureMemoryUnavailable
    }
    return decoy
  }

  /// Memory and passes: two hashes of the same costs take the same time.
  package var costs: [UInt32] { [memory, passes] }

  private static func number(_ text: Substring, _ name: String) -> UInt32? {
    guard text.hasPrefix(name) else { return nil }
    let digits = text.dropFirst(name.count)
    guard let value = UInt32(digits), String(value) == digits else { return nil }
    return value
  }

  /// The number of bytes behind base64 without padding.
  private static func decode(_ text: Substring) -> Int? {
    guard !text.contains("=") else { return nil }
    return Base64.decode(text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4))?.count
  }

  private static func encode(_ bytes: [UInt8]) -> String {
    String(Base64.encode(bytes).prefix { $0 != "=" })
  }
}
