package import PinfoldModel

/// What a probe offers: the application's ClientHello, as far as OpenSSL can say it.
///
/// Codes that this OpenSSL does not know (GREASE among them) are left out, the order of the others is kept.
package struct ProbeOffer: Hashable, Sendable {
  /// The host for SNI; `nil` or an address sends none (RFC 6066 §3).
  package var serverName: HostName?
  /// The protocol names of ALPN as on the wire, each with its length in front (RFC 7301 §3.1); empty sends none.
  package var alpn: [UInt8]
  /// What the context is made from.
  package var profile: Profile

  /// The part of an offer that many hosts share: one `SSL_CTX` serves all probes with the same.
  package struct Profile: Hashable, Sendable {
    /// Lowest version offered, 0x0301 to 0x0304.
    package var lowest: UInt16
    /// Highest version offered, 0x0301 to 0x0304.
    package var highest: UInt16
    /// Suites of all versions, in order of preference.
    package var cipherSuites: [UInt16]
    /// `supported_groups`; empty means OpenSSL's own.
    package var groups: [UInt16]
    /// `signature_algorithms`; empty means OpenSSL's own.
    package var signatureSchemes: [UInt16]
    /// Whether a stapled OCSP answer is asked for.
    package var requestsStatus: Bool

    /// Without arguments: OpenSSL's own offer for TLS 1.2 and 1.3.
    package init(
      lowest: UInt16 = 0x0303, highest: UInt16 = 0x0304, cipherSuites: [UInt16] = [], groups: [UInt16] = [],
      signatureSchemes: [UInt16] = [], requestsStatus: Bool = false
    ) {
      self.lowest = lowest
      self.highest = highest
      self.cipherSuites = cipherSuites
      self.groups = groups
      self.signatureSchemes = signatureSchemes
      self.requestsStatus = requestsStatus
    }
  }

  /// An offer to `serverName`, by default with OpenSSL's own suites, groups and schemes.
  package init(serverName: HostName?, alpn: [UInt8] = [], profile: Profile = Profile()) {
    self.serverName = serverName
    self.alpn = alpn
    self.profile = profile
  }
}
