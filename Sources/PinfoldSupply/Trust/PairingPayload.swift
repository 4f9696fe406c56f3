import PinfoldConfig
package import PinfoldModel
import PinfoldPolicy

/// What a device shows to be paired with, usually as a QR code:
/// `{"version":"1","host","port","code","expiresAt","certificateFingerprint"}`.
package struct PairingPayload: Equatable, Sendable {
  /// Bytes of a payload: a QR code holds fewer.
  package static let byteLimit = 8192

  /// Where the device is.
  package let authority: Authority
  /// From this moment on the payload does not count.
  package let expires: Timestamp
  /// SHA-256 over the device's certificate.
  package let fingerprint: Digest256

  /// Reads a payload: strict JSON. `code`, which is for the device and a secret, is not kept; members of other names are
  /// left alone. Throws for other versions, for hosts that are not of the local network, and for everything malformed.
  package init(_ bytes: [UInt8]) throws(PairingError) {
    let node: JSONNode
    do throws(JSONError) { node = try JSONNode(parsing: bytes[...], dialect: .json) } catch { throw .notJSON }
    guard case .object = node.value else { throw .notJSON }
    // Looked at first: another version may mean anything by the rest.
    guard case .string("1") = node["version"]?.value else { throw .version }
    guard case .string(let hostText) = node["host"]?.value,
      let host = HostName(hostText, bracketed: hostText.hasPrefix("["))
    else { throw .malformed("host") }
    guard LocalNetwork.contains(host) else { throw .notLocal(host) }
    guard case .number(let number) = node["port"]?.value, let port = number.integer.flatMap({ UInt16(exactly: $0) }),
      port > 0
    else { throw .malformed("port") }
    guard case .string(let code) = node["code"]?.value, !code.isEmpty else { throw .malformed("code") }
    guard let expires = Self.moment(node["expiresAt"]?.value) else { throw .malformed("expiresAt") }
    guard case .string(let text) = node["certificateFingerprint"]?.value, let fingerprint = Self.fingerprint(text)
    else {
      throw .malformed("certificateFingerprint")
    }
    authority = Authority(host: host, port: port)
    self.expires = expires
    self.fingerprint = fingerprint
  }

  /// Throws when the payload's time is over.
  package func requireValid(at now: Timestamp) throws(PairingError) {
    guard now < expires else { throw .expired(expires) }
  }

  /// An RFC 3339 time, or seconds or milliseconds since 1970.
  private static func moment(_ value: JSONNode.Value?) -> Timestamp? {
    switch value {
    case .string(let text): return Timestamp(text)
    case .number(let number):
      guard let number = number.integer, number > 0 else { return nil }
      // In seconds this would be the year 5138; in milliseconds it is 1973.
      return Timestamp(seconds: number < 100_000_000_000 ? number : number / 1000)
    default: return nil
    }
  }

  /// 64 hexadecimal digits, in pairs with colons between or without, or 44 characters of base64.
  static func fingerprint(_ text: String) -> Digest256? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count > 1 else { return Self.digest(text) }
    guard parts.count == Digest256.byteCount, parts.allSatisfy({ $0.utf8.count == 2 }) else { return nil }
    return Hex.decode(parts.joined()).flatMap { Digest256($0) }
  }

  private static func digest(_ text: String) -> Digest256? {
    switch Pin("cert-sha256/\(text)") {
    case .certificate(let digest): digest
    default: nil
    }
  }
}

/// Why a payload pairs with nothing.
package enum PairingError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Not a JSON object, or one with a member twice.
  case notJSON
  /// Another version than "1".
  case version
  /// A member that is missing or has no value of its kind.
  case malformed(String)
  /// The host is not one of the local network.
  case notLocal(HostName)
  /// The payload's time is over.
  case expired(Timestamp)

  /// One line that says what would be right, and nothing of the code.
  package var description: String {
    switch self {
    case .notJSON: "no pairing payload: expected a JSON object, as the device shows it"
    case .version: "no pairing payload of version \"1\", the only one there is"
    case .malformed(let name):
      "no pairing payload: \"\(name)\" is missing or malformed; "
        + (Self.wanted[name].map { "right would be \($0)" } ?? "ask the device for another one")
    case .notLocal(let host):
      "\(host.text) is not on the local network: right would be a private, link-local or loopback address, a name below "
        + ".local or .home.arpa, or a single label"
    case .expired(let time): "the pairing payload expired at \(time.text); ask the device for another one"
    }
  }

  private static let wanted = [
    "host": "an address such as \"192.168.1.42\", or a name such as \"printer.local\"",
    "port": "a number from 1 to 65535",
    "code": "a text", "expiresAt": "a time such as \"2026-11-21T00:00:00Z\", or seconds or milliseconds since 1970",
    "certificateFingerprint": "a SHA-256 as 64 hexadecimal digits, with or without colons, or as base64",
  ]
}
