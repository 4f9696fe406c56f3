/// ML-KEM-768 (FIPS 203), for probes on systems whose OpenSSL has none (before 3.5).
///
/// Nothing secret of an application hangs on it: its keys protect a handshake of Pinfold's own that carries no data.
/// It is written without secret-dependent branches and indexes all the same; secrets pass through arrays that are not
/// zeroed, which is why it must not be used for anything but probes.
enum MLKEM768 {
  /// Bytes of an encapsulation key: what a client sends.
  static let encapsulationKeyCount = 1184
  /// Bytes of a decapsulation key.
  static let decapsulationKeyCount = 2400
  /// Bytes of a ciphertext: what a server answers.
  static let ciphertextCount = 1088
  /// Bytes of the shared secret, of each seed, and of the message of an encapsulation.
  static let secretCount = 32

  private static let rank = 3
  private static let widthU = 10
  private static let widthV = 4
  private static let vectorCount = 384 * rank

  /// ML-KEM.KeyGen_internal (algorithm 16) from two seeds of 32 random bytes.
  static func keyPair(
    d: [UInt8], z: [UInt8]
  ) throws(TLSError) -> (encapsulationKey: [UInt8], decapsulationKey: [UInt8]) {
    guard d.count == secretCount, z.count == secretCount else { throw .unreadable("ML-KEM seeds have 32 bytes each") }
    let expanded = try Keccak.sha3x512.hash(d + [UInt8(rank)])
    let (rho, sigma) = (Array(expanded[..<32]), Array(expanded[32...]))
    let matrix = try matrix(rho)
    var secret: [Polynomial] = []
    var noise: [Polynomial] = []
    for index in 0..<rank {
      secret.append(try Polynomial.small(seed: sigma, counter: UInt8(index)).transformed())
      noise.append(try Polynomial.small(seed: sigma, counter: UInt8(rank + index)).transformed())
    }
    let publicVector = (0..<rank).map { row in inner(matrix[row], secret) + noise[row] }
    let encapsulationKey = publicVector.flatMap { $0.encoded(width: 12) } + rho
    let decapsulationKey =
      secret.flatMap { $0.encoded(width: 12) } + encapsulationKey + (try Keccak.sha3x256.hash(encapsulationKey)) + z
    return (encapsulationKey, decapsulationKey)
  }

  /// ML-KEM.Encaps_internal (algorithm 17) with the checks of §7.2: length, and every coefficient below the modulus.
  static func encapsulate(
    to key: [UInt8], message: [UInt8]
  ) throws(TLSError) -> (ciphertext: [UInt8], secret: [UInt8]) {
    guard key.count == encapsulationKeyCount, message.count == secretCount else {
      throw .unreadable("an ML-KEM-768 encapsulation key has 1,184 bytes")
    }
    for index in 0..<rank {
      let part = key[(384 * index)..<(384 * (index + 1))]
      guard Polynomial(encoded: part, width: 12)?.encoded(width: 12) == Array(part) else {
        throw .unreadable("an ML-KEM-768 encapsulation key with a coefficient over the modulus")
      }
    }
    let expanded = try Keccak.sha3x512.hash(message + (try Keccak.sha3x256.hash(key)))
    let ciphertext = try encrypt(message, to: key[...], coins: Array(expanded[32...]))
    return (ciphertext, Array(expanded[..<32]))
  }

  /// ML-KEM.Decaps_internal (algorithm 18) with the length checks of §7.3. A ciphertext that was not made for this key
  /// gives a secret nobody else knows (implicit rejection), chosen without a branch.
  static func decapsulate(_ ciphertext: [UInt8], with key: [UInt8]) throws(TLSError) -> [UInt8] {
    guard ciphertext.count == ciphertextCount, key.count == decapsulationKeyCount else {
      throw .unreadable("an ML-KEM-768 ciphertext has 1,088 bytes")
    }
    let encapsulationKey = key[vectorCount..<(vectorCount + encapsulationKeyCount)]
    let rest = key[encapsulationKey.endIndex...]
    let (keyHash, z) = (Array(rest.prefix(32)), Array(rest.suffix(32)))
    let message = try decrypt(ciphertext, with: key[..<vectorCount])
    let expanded = try Keccak.sha3x512.hash(message + keyHash)
    let rejected = try Keccak.shake256.output(z + ciphertext, count: secretCount)
    let expected = try encrypt(message, to: encapsulationKey, coins: Array(expanded[32...]))
    var difference: UInt8 = 0
    for index in 0..<ciphertextCount { difference |= expected[index] ^ ciphertext[index] }
    // 0xff where the ciphertext is right, 0 where it is not.
    let mask = UInt8(truncatingIfNeeded: (UInt16(difference) &- 1) >> 8)
    return (0..<secretCount).map { expanded[$0] & mask | rejected[$0] & ~mask }
  }

  /// K-PKE.Encrypt (algorithm 14). The caller has checked the length of the key.
  private static func encrypt(
    _ message: [UInt8], to key: ArraySlice<UInt8>, coins: [UInt8]
  ) throws(TLSError) -> [UInt8] {
    let t = try vector(key.prefix(vectorCount), width: 12)
    let matrix = try matrix(Array(key.suffix(32)))
    var y: [Polynomial] = []
    var noise: [Polynomial] = []
    for index in 0..<rank {
      y.append(try Polynomial.small(seed: coins, counter: UInt8(index)).transformed())
      noise.append(try Polynomial.small(seed: coins, counter: UInt8(rank + index)))
    }
    let last = try Polynomial.small(seed: coins, counter: UInt8(2 * rank))
    guard let mu = Polynomial(encoded: message[...], width: 1)?.decompressed(width: 1) else {
      throw .unreadable("an ML-KEM message has 32 bytes")
    }
    let u = (0..<rank).map { column in
      inner(matrix.map { $0[column] }, y).restored() + noise[column]
    }
    let v = inner(t, y).restored() + last + mu
    return u.flatMap { $0.compressed(width: widthU).encoded(width: widthU) }
      + v.compressed(width: widthV).encoded(width: widthV)
  }

  /// K-PKE.Decrypt (algorithm 15).
  private static func decrypt(_ ciphertext: [UInt8], with key: ArraySlice<UInt8>) throws(TLSError) -> [UInt8] {
    let first = ciphertext.prefix(32 * widthU * rank)
    let u = try vector(first, width: widthU).map { $0.decompressed(width: widthU).transformed() }
    let v = try vector(ciphertext[first.endIndex...], width: widthV)[0].decompressed(width: widthV)
    let secret = try vector(key, width: 12)
    return (v - inner(secret, u).restored()).compressed(width: 1).encoded(width: 1)
  }

  /// The matrix Â, row by row: element (i, j) is sampled from ρ ‖ j ‖ i (algorithm 13, step 6).
  private static func matrix(_ rho: [UInt8]) throws(TLSError) -> [[Polynomial]] {
    var rows: [[Polynomial]] = []
    for row in 0..<rank {
      var line: [Polynomial] = []
      for column in 0..<rank { line.append(try Polynomial.uniform(seed: rho + [UInt8(column), UInt8(row)])) }
      rows.append(line)
    }
    return rows
  }

  /// Sum of products of transforms.
  private static func inner(_ left: [Polynomial], _ right: [Polynomial]) -> Polynomial {
    zip(left, right).reduce(Polynomial()) { $0 + $1.0 * $1.1 }
  }

  /// As many polynomials as the bytes hold.
  private static func vector(_ bytes: ArraySlice<UInt8>, width: Int) throws(TLSError) -> [Polynomial] {
    var result: [Polynomial] = []
    var rest = bytes
    while !rest.isEmpty {
      guard let one = Polynomial(encoded: rest.prefix(32 * width), width: width) else {
        throw .unreadable("ML-KEM bytes of a wrong length")
      }
      result.append(one)
      rest = rest.dropFirst(32 * width)
    }
    return result
  }
}
