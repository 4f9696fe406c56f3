import PinfoldCrypto

/// The form of one file of the sealed cache.
///
///     pinfold-record v1           a line of ASCII
///     nonce, cipher text, tag     XChaCha20-Poly1305; the file's name is bound as associated data
///
/// Sealed is: a byte 1, the name's length (2 bytes, most significant first), the name, the contents' length (4 bytes),
/// the contents, and zeros up to a multiple of 512 bytes, so that the size of a file says little about what is in it.
struct SealedRecord: Equatable {
  static let firstLine = Array("pinfold-record v1\n".utf8)
  private static let form: UInt8 = 1
  private static let step = 512
  /// Bytes beside name and contents.
  private static let frame = 7

  /// What the record is called; never in the clear.
  var name: [UInt8]
  var contents: [UInt8]

  /// Bytes of a file whose name and contents have at most this many, together.
  static func fileLimit(_ count: Int) -> Int { firstLine.count + SealingKey.overhead + padded(frame + count) }

  private static func padded(_ count: Int) -> Int { (count + step - 1) / step * step }

  /// The bytes of the file called `file`. Names have fewer than 65,536 bytes, contents fewer than 2³².
  func seal(file: String, key: SealingKey) throws(CryptoError) -> [UInt8] {
    guard let nameCount = UInt16(exactly: name.count), let count = UInt32(exactly: contents.count) else {
      throw .sealBroken
    }
    var plain: [UInt8] = []
    let total = Self.padded(Self.frame + name.count + contents.count)
    plain.reserveCapacity(total)
    plain += [Self.form, UInt8(truncatingIfNeeded: nameCount >> 8), UInt8(truncatingIfNeeded: nameCount)]
    plain += name
    for shift in [24, 16, 8, 0] as [UInt32] { plain.append(UInt8(truncatingIfNeeded: count >> shift)) }
    plain += contents
    plain += [UInt8](repeating: 0, count: total - plain.count)
    return Self.firstLine + (try key.seal(plain, context: Self.context(file)))
  }

  /// Reads the file called `file`; throws `sealBroken` for anything that `seal` did not make for this name and key.
  init(opening bytes: [UInt8], file: String, key: SealingKey) throws(CryptoError) {
    guard bytes.starts(with: Self.firstLine) else { throw .sealBroken }
    let plain = try key.open(Array(bytes[Self.firstLine.count...]), context: Self.context(file))
    // Nobody without the key gets beyond this point; the checks are for what a later version might have sealed.
    guard plain.count >= Self.frame, plain.count % Self.step == 0, plain[0] == Self.form else { throw .sealBroken }
    let nameEnd = 3 + (Int(plain[1]) << 8 | Int(plain[2]))
    guard nameEnd + 4 <= plain.count else { throw .sealBroken }
    let count = plain[nameEnd..<nameEnd + 4].reduce(0) { $0 << 8 | Int($1) }
    let end = nameEnd + 4 + count
    guard end <= plain.count, Self.padded(end) == plain.count, plain[end...].allSatisfy({ $0 == 0 }) else {
      throw .sealBroken
    }
    name = Array(plain[3..<nameEnd])
    contents = Array(plain[(nameEnd + 4)..<end])
  }

  init(name: [UInt8], contents: [UInt8]) {
    self.name = name
    self.contents = contents
  }

  private static func context(_ file: String) -> [UInt8] { firstLine + Array(file.utf8) }
}
