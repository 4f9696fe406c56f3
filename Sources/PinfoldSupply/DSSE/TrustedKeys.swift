package import PinfoldConfig
package import PinfoldCrypto
package import PinfoldModel
package import PinfoldPolicy

/// The keys that may sign, and how many of them have to.
package struct TrustedKeys: Sendable {
  /// Each key once.
  package let keys: [Ed25519PublicKey]
  /// At least 1 and at most the number of keys.
  package let required: Int

  /// Takes keys, each counted once however often it is given; `nil` when there are fewer than `required`, or when
  /// `required` is below 1: such a threshold would believe everything or nothing.
  package init?(_ keys: [Ed25519PublicKey], required: Int) {
    var distinct: [Ed25519PublicKey] = []
    for key in keys where !distinct.contains(key) { distinct.append(key) }
    guard required >= 1, required <= distinct.count else { return nil }
    self.keys = distinct
    self.required = required
  }

  /// Reads `policy.trusted_keys` and `policy.required_signatures`. Every mistake is a complaint at its place in `file`.
  package init(_ section: PolicySection, file: String) throws(FileErrors) {
    var complaints: [Complaint] = []
    var keys: [Ed25519PublicKey] = []
    for located in section.trustedKeys {
      do throws(CryptoError) { try keys.append(Ed25519PublicKey(located.text)) } catch {
        complaints.append(Complaint(at: located.place, path: located.path, error.description))
      }
    }
    guard complaints.isEmpty else { throw FileErrors(file: file, complaints) }
    guard let trusted = TrustedKeys(keys, required: section.requiredSignatures) else {
      let distinct = Set(keys).count
      throw FileErrors(
        file: file,
        [
          Complaint(
            at: section.requiredSignaturesPlace, path: "policy.required_signatures",
            "\(section.requiredSignatures) signatures of \(distinct) trusted keys: expected 1 to \(distinct), "
              + "and at least one key in policy.trusted_keys")
        ])
    }
    self = trusted
  }

  /// Reads a document's `trusted_keys`. Throws one line that names the key.
  package init(_ set: SignerSet) throws(TrustedKeysError) {
    var keys: [Ed25519PublicKey] = []
    for (index, text) in set.keys.enumerated() {
      do throws(CryptoError) { try keys.append(Ed25519PublicKey(text)) } catch {
        throw TrustedKeysError(text: "trusted_keys.keys[\(index)]: \(error.description)")
      }
    }
    guard let trusted = TrustedKeys(keys, required: set.requiredSignatures) else {
      throw TrustedKeysError(
        text: "trusted_keys: \(set.requiredSignatures) signatures of \(Set(keys).count) different keys")
    }
    self = trusted
  }

  /// SHA-256 over the threshold and the sorted keys: the same for two sets that believe the same.
  package var digest: Digest256 {
    let sorted = keys.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
    return SHA256.digest(Array("pinfold trusted keys \(required)\n".utf8) + sorted.joined())
  }

  /// The trusted keys of this id: one, but for a collision of 64 bits.
  func keys(withID keyID: String) -> [Ed25519PublicKey] { keys.filter { $0.keyID == keyID } }
}

/// Why the keys of a policy document cannot be used.
package struct TrustedKeysError: Error, Equatable, Sendable {
  /// One line that names the key.
  package let text: String
}
