import FoundationEssentials
import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldSupply
import Testing

/// Keys, policies and a directory of one test's own.
final class SupplyFixture {
  let path: String
  let keys: [Ed25519SecretKey]
  /// 2026-11-21T00:00:00Z.
  let now = Timestamp(seconds: 1_795_219_200)

  init(keyCount: Int = 1) throws {
    path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path
    keys = try (0..<keyCount).map { _ in try Ed25519SecretKey() }
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// A policy document valid from a day before `now` to a day after it, shifted as told, in seconds.
  func policy(
    version: Int, issuedIn issued: Int64 = -86_400, expiresIn expires: Int64 = 86_400, host: String = "a.example.com"
  )
    -> [UInt8]
  {
    let pin = "sha256/\(Base64.encode([UInt8](repeating: UInt8(truncatingIfNeeded: version), count: 32)))"
    return Array(
      """
      {version: \(version), issued_at: "\(Timestamp(seconds: now.seconds + issued).text)",
       expires_at: "\(Timestamp(seconds: now.seconds + expires).text)",
       ssl_pinning_config: {hosts: {"\(host)": {pins: ["\(pin)"]}}}}
      """.utf8)
  }

  func bundle(version: Int, issuedIn: Int64 = -86_400, expiresIn: Int64 = 86_400, host: String = "a.example.com")
    -> [UInt8]
  {
    PolicyBundle.sign(
      policy(version: version, issuedIn: issuedIn, expiresIn: expiresIn, host: host), keys: keys)
  }

  func put(_ name: String, _ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(filePath: "\(path)/\(name)")) }
  func get(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: "\(path)/\(name)"))) }
  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: "\(path)/\(name)") }
  func mode(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")[.posixPermissions] as? Int
  }

  var trust: TrustedKeys {
    get throws { try #require(TrustedKeys(keys.map(\.publicKey), required: 1)) }
  }

  func located(_ text: String, _ key: String, line: Int = 1) -> Located {
    Located(text, place: SourcePlace(line: line, column: 1), path: key)
  }

  func section(_ bundles: [String] = ["policy.signed.json"], maxBytes: Int = 8_388_608) -> PolicySection {
    var section = PolicySection()
    section.bundles = bundles.enumerated().map {
      located($1.contains("://") ? $1 : "\(path)/\($1)", "policy.bundles[\($0)]")
    }
    section.trustedKeys = keys.enumerated().map { located($1.publicKey.text, "policy.trusted_keys[\($0)]") }
    section.maxBundleBytes = maxBytes
    return section
  }

  func source(_ bundles: [String] = ["policy.signed.json"], maxBytes: Int = 8_388_608) throws -> BundleSource {
    try BundleSource(section(bundles, maxBytes: maxBytes), file: "pinfold.json5")
  }

  func keeper(_ bundles: [String] = ["policy.signed.json"], maxBytes: Int = 8_388_608) throws -> PolicyKeeper {
    PolicyKeeper(source: try source(bundles, maxBytes: maxBytes), stateDirectory: "\(path)/state")
  }
}
