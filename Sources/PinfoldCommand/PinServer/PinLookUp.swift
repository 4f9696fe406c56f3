import PinfoldModel

/// What is known of a host's keys.
struct HostPins: Equatable, Sendable {
  /// SHA-256 over the SubjectPublicKeyInfo of each, the one in use first; never empty.
  var keys: [Digest256]
  /// Until when they may be told to others; `nil` without an end.
  var validUntil: Timestamp?
}

/// Why a host's pins cannot be told.
enum PinLookUpFailure: Error, Equatable, Sendable {
  /// Its keys cannot be known; in words for the operator, not for the asker.
  case unknown(String)
  /// Too many hosts are being looked up already.
  case busy
}

/// Where a pin server has its pins from. Asked on the loop's thread.
protocol PinLookUp: Sendable {
  func pins(of host: HostName) async -> Result<HostPins, PinLookUpFailure>
}
