package import PinfoldModel
package import PinfoldPolicy

/// A trusted key as the sealed cache keeps it, under the name `host:port`:
///
///     pinfold-trust v1
///     pin cert-sha256/…
///     since 2026-11-21T00:00:00Z
///     origin paired
package enum TrustRecord {
  private static let firstLine = "pinfold-trust v1"

  /// The name of a host's record.
  package static func name(_ authority: Authority) -> String { authority.text }

  /// The contents of a key's record.
  package static func contents(_ key: TrustedKey) -> [UInt8] {
    Array("\(firstLine)\npin \(key.pin.text)\nsince \(key.since.text)\norigin \(key.origin.rawValue)\n".utf8)
  }

  /// Reads contents, which have to be exactly as `contents` writes them; `nil` for anything else.
  package static func key(_ contents: [UInt8]) -> TrustedKey? {
    let lines = contents.split(separator: 0x0a, omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard lines.count == 5, let pin = Pin(lines[1].dropFirst(4)), let since = Timestamp(lines[2].dropFirst(6)),
      let origin = TrustedKey.Origin(rawValue: String(lines[3].dropFirst(7)))
    else { return nil }
    let key = TrustedKey(pin, since: since, origin: origin)
    // One spelling only: whatever differs was not written by us.
    return self.contents(key) == contents ? key : nil
  }
}
