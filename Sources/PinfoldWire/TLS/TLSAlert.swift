/// Alerts Pinfold sends itself, in the clear.
package enum TLSAlert {
  /// `access_denied` (RFC 8446 §6.2): what a client reads when its tunnel is refused.
  package static let accessDenied: UInt8 = 49

  /// A fatal alert record.
  ///
  /// - Parameter version: the record version: `ClientHello.alertRecordVersion` before the client has read a
  ///   ServerHello.
  package static func fatal(_ code: UInt8, version: UInt16) -> [UInt8] {
    [ContentType.alert, UInt8(version >> 8), UInt8(version & 0xff), 0, 2, 2, code]
  }
}
