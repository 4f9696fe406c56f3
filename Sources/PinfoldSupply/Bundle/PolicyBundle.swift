import PinfoldConfig
package import PinfoldCrypto
package import PinfoldModel
package import PinfoldPolicy

/// A signed policy that was accepted.
package struct PolicyBundle: Sendable {
  /// The DSSE payload type of a policy document.
  package static let payloadType = "application/vnd.pinfold.policy+json"

  /// Where it came from.
  package let file: String
  /// The policy.
  package let document: PolicyDocument
  /// SHA-256 over the signed payload: tells two bundles of one version apart.
  package let payloadDigest: Digest256
  /// Ids of the trusted keys that signed it.
  package let signers: [String]
  /// The keys it names for the time after it (`trusted_keys`). Enough of them have signed it too.
  package let successors: TrustedKeys?

  /// Verifies an envelope and reads its policy, but asks neither clock nor history: for `verify` and `check`.
  ///
  /// A document that names new keys has to be signed by enough of them as well: who takes over has to be there, and
  /// nobody can be named who is not.
  package init(envelope bytes: [UInt8], trust: TrustedKeys, file: String) throws(BundleRefusal) {
    let envelope: Envelope
    let payload: ArraySlice<UInt8>
    do throws(EnvelopeError) {
      envelope = try Envelope(parsing: bytes)
      (payload, signers) = try envelope.verify(type: Self.payloadType, trust: trust)
    } catch {
      throw BundleRefusal(file: file, cause: .envelope(error))
    }
    do throws(FileErrors) { document = try PolicyDocument(reading: payload, file: file) } catch {
      throw BundleRefusal(file: file, cause: .invalid(error))
    }
    successors = try Self.successors(of: document, envelope, file: file)
    payloadDigest = SHA256.digest(payload.span)
    self.file = file
  }

  private static func successors(
    of document: PolicyDocument, _ envelope: Envelope, file: String
  ) throws(BundleRefusal) -> TrustedKeys? {
    guard let set = document.trustedKeys else { return nil }
    let keys: TrustedKeys
    do throws(TrustedKeysError) { keys = try TrustedKeys(set) } catch {
      throw BundleRefusal(file: file, cause: .keys(error.text))
    }
    do throws(EnvelopeError) { _ = try envelope.verify(type: payloadType, trust: keys) } catch {
      throw BundleRefusal(file: file, cause: .rotation(error))
    }
    return keys
  }

  /// Throws unless this bundle may come into force at `now`, when `highest` is the highest version ever accepted (0:
  /// none). That version itself may: it is what was in force before a restart.
  package func requireAcceptable(at now: Timestamp, highest: UInt64) throws(BundleRefusal) {
    switch document.validity(at: now) {
    case .expired: throw BundleRefusal(file: file, cause: .expired(document.expiresAt))
    case .notYetIssued: throw BundleRefusal(file: file, cause: .notYetIssued(document.issuedAt))
    case .valid: break
    }
    guard document.version >= highest else {
      throw BundleRefusal(file: file, cause: .rollback(version: document.version, highest: highest))
    }
  }

  /// Signs a policy document (JSON5, as the operator wrote it) for use as a bundle. The caller has read it first, so
  /// that nothing invalid is signed.
  package static func sign(_ document: [UInt8], keys: [Ed25519SecretKey]) -> [UInt8] {
    Envelope.sign(document, type: payloadType, keys: keys)
  }
}
