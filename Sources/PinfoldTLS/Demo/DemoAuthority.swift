import COpenSSL
package import PinfoldModel

/// A certificate authority that lives in memory, for `pinfold demo` and tests: keys on P-256 are made anew each time
/// and never written anywhere.
package final class DemoAuthority: Sendable {
  /// What a certificate says of itself.
  package struct Wish: Sendable {
    /// The subject's common name.
    package var commonName: String
    /// Names and addresses it is good for.
    package var hosts: [HostName]
    /// First second of validity.
    package var notBefore: Timestamp
    /// Last second of validity.
    package var notAfter: Timestamp
    /// Extended key usage in the words of x509v3_config(5).
    package var usage: String

    /// Valid from an hour before `now` to a day after it, for TLS servers.
    package init(commonName: String, hosts: [HostName] = [], now: Timestamp, usage: String = "serverAuth") {
      self.commonName = commonName
      self.hosts = hosts
      self.usage = usage
      notBefore = Timestamp(seconds: now.seconds - 3600)
      notAfter = Timestamp(seconds: now.seconds + 86_400)
    }
  }

  private let identity: DemoIdentity
  /// The authority's own certificate.
  package let certificate: Certificate
  /// The authorities above, nearest first, without the root; this one first unless it is the root.
  private let path: [Certificate]

  /// A root, or an authority signed by `parent`.
  package init(commonName: String, now: Timestamp, signedBy parent: DemoAuthority? = nil) throws(TLSError) {
    let wish = Wish(commonName: commonName, now: now)
    let made = try Self.make(wish, isAuthority: true, signer: parent)
    guard let own = made.chain.first else { throw .failed(call: "demo authority", detail: "no certificate") }
    identity = made
    certificate = own
    path = parent.map { [own] + $0.path } ?? []
  }

  /// A leaf signed by this authority, with a key of its own.
  package func issue(_ wish: Wish) throws(TLSError) -> DemoIdentity {
    try Self.make(wish, isAuthority: false, signer: self)
  }

  /// A leaf that signs itself, as devices have.
  package static func selfSigned(_ wish: Wish) throws(TLSError) -> DemoIdentity {
    try make(wish, isAuthority: false, signer: nil)
  }

  private static func make(_ wish: Wish, isAuthority: Bool, signer: DemoAuthority?) throws(TLSError) -> DemoIdentity {
    ErrorQueue.clear()
    guard let key = unsafe pinfold_generate_p256() else { throw .drained("EVP_EC_gen") }
    do throws(TLSError) {
      let certificate = try unsafe sign(wish, isAuthority: isAuthority, key: key, signer: signer)
      return unsafe DemoIdentity(takingOwnership: key, chain: [certificate] + (signer?.path ?? []))
    } catch {
      unsafe EVP_PKEY_free(key)
      throw error
    }
  }

  private static func sign(
    _ wish: Wish, isAuthority: Bool, key: OpaquePointer, signer: DemoAuthority?
  ) throws(TLSError) -> Certificate {
    guard let draft = unsafe X509_new() else { throw .drained("X509_new") }
    defer { unsafe X509_free(draft) }
    let issuer = unsafe signer?.certificate.raw ?? draft
    let name = Array(wish.commonName.utf8)
    guard unsafe X509_set_version(draft, 2) == 1,
      unsafe pinfold_set_random_serial(draft) == 1,
      unsafe ASN1_TIME_set(X509_getm_notBefore(draft), time_t(wish.notBefore.seconds)) != nil,
      unsafe ASN1_TIME_set(X509_getm_notAfter(draft), time_t(wish.notAfter.seconds)) != nil,
      unsafe X509_set_pubkey(draft, key) == 1,
      unsafe X509_NAME_add_entry_by_NID(
        X509_get_subject_name(draft), NID_commonName, MBSTRING_UTF8, name, Int32(clamping: name.count), -1, 0) == 1,
      unsafe X509_set_issuer_name(draft, X509_get_subject_name(issuer)) == 1
    else { throw .drained("X509_new") }
    for (nid, value) in extensions(wish, isAuthority: isAuthority) {
      guard unsafe pinfold_add_extension(draft, issuer, nid, value) == 1 else { throw .drained("X509_add_ext") }
    }
    let signingKey = unsafe signer?.identity.key ?? key
    guard unsafe X509_sign(draft, signingKey, Digest.sha256.raw) > 0 else { throw .drained("X509_sign") }
    return try unsafe Certificate(copying: draft)
  }

  private static func extensions(_ wish: Wish, isAuthority: Bool) -> [(Int32, String)] {
    var list: [(Int32, String)] = [(NID_subject_key_identifier, "hash")]
    if isAuthority {
      list += [(NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign")]
    } else {
      list += [
        (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
        (NID_ext_key_usage, wish.usage),
      ]
    }
    if !wish.hosts.isEmpty {
      let names = wish.hosts.map { ($0.isAddress ? "IP:" : "DNS:") + $0.text }
      list.append((NID_subject_alt_name, names.joined(separator: ",")))
    }
    return list
  }
}
