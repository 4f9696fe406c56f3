import COpenSSL
package import PinfoldModel

extension Certificate {
  /// The subject's last common name, fit for a terminal: characters that are not printable become `?`, and at most
  /// 64 are kept (the upper bound of RFC 5280, appendix A.1). `nil` where there is none.
  package var commonName: String? {
    let name = unsafe X509_get_subject_name(raw)
    var index: Int32 = -1
    while true {
      let next = unsafe X509_NAME_get_index_by_NID(name, NID_commonName, index)
      guard next >= 0 else { break }
      index = next
    }
    guard index >= 0, let entry = unsafe X509_NAME_get_entry(name, index),
      let data = unsafe X509_NAME_ENTRY_get_data(entry)
    else { return nil }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe ASN1_STRING_to_UTF8(&bytes, data)
    guard count >= 0, let bytes = unsafe bytes else {
      ErrorQueue.clear()
      return nil
    }
    defer { unsafe pinfold_free(bytes) }
    let text = unsafe String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    return String(text.unicodeScalars.prefix(64).map { Character(Self.isPrintable($0) ? $0 : "?") })
  }

  private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }

  /// The last second of validity. `nil` if the field cannot be read, which a chain then cannot verify with either.
  package var notAfter: Timestamp? { unsafe Self.timestamp(X509_get0_notAfter(raw)) }

  /// The first second of validity; `nil` as for `notAfter`.
  package var notBefore: Timestamp? { unsafe Self.timestamp(X509_get0_notBefore(raw)) }

  private static func timestamp(_ time: UnsafePointer<ASN1_TIME>?) -> Timestamp? {
    guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
    defer { unsafe ASN1_STRING_free(epoch) }
    var days: Int32 = 0
    var seconds: Int32 = 0
    guard let time = unsafe time, unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else {
      ErrorQueue.clear()
      return nil
    }
    return Timestamp(seconds: Int64(days) * 86_400 + Int64(seconds))
  }

  /// Whether this certificate may sign others (X509_check_ca(3)).
  package var isAuthority: Bool { unsafe X509_check_ca(raw) > 0 }

  /// Whether `other` signed this certificate, by names and key identifiers (X509_check_issued(3)); no signature is
  /// verified here.
  func isIssued(by other: Certificate) -> Bool { unsafe X509_check_issued(other.raw, raw) == X509_V_OK }

  /// `sha256/…  CN…`: the line `pinfold pin` prints.
  package var pinLine: String { "\(Pin.publicKey(keyDigest).text)  CN=\(commonName ?? "(none)")" }
}
