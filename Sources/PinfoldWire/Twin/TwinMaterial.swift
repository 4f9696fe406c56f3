/// What a twin hello has of its own: everything random or secret-bearing, made by the caller, since nothing here can make
/// randomness or keys.
package struct TwinMaterial: Sendable {
  /// The end of ClientHello.random, 28 bytes; the first four are the app's.
  package let random: [UInt8]
  /// A public share for each group the app sent one of.
  package let shares: [UInt16: [UInt8]]
  /// Random bytes for the contents of pre_shared_key, at least `TwinHello.fillerCount(for:)`.
  package let filler: [UInt8]

  /// Takes random bytes and shares as described at the fields.
  package init(random: [UInt8], shares: [UInt16: [UInt8]], filler: [UInt8]) {
    self.random = random
    self.shares = shares
    self.filler = filler
  }
}

/// Why there can be no twin of a hello. The OpenSSL probe stands in then.
package enum TwinImpossible: Error, Equatable, Sendable {
  /// The app sent a share of a group in which Pinfold has no key, or one of another length than the group's.
  case keyShare(group: UInt16)
  /// The hello is not one that offers TLS 1.3.
  case notTLS13
  /// The two connections were not asked for the same retry, or a second hello does not fit the first.
  case differentRetry
  /// What was to be put in does not fit, or what came out does not read: a mistake of the caller.
  case material
}
