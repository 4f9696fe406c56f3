import FoundationEssentials
import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

/// A directory with a sealed cache, and generations of keys that follow one another.
final class RotationFixture {
  let base: SupplyFixture
  /// Generations of keys, two each; the first is the configured one.
  let generations: [[Ed25519SecretKey]]
  var configured: [Ed25519SecretKey]
  var required = 1

  init(_ count: Int = 4) throws {
    base = try SupplyFixture()
    generations = try (0..<count).map { _ in try (0..<2).map { _ in try Ed25519SecretKey() } }
    configured = generations[0]
  }

  var now: Timestamp { base.now }

  /// A policy document, which names the keys of `next` if there are any.
  func policy(
    version: Int, next: [Ed25519SecretKey] = [], required: Int = 1, issuedIn issued: Int64 = -86_400,
    expiresIn expires: Int64 = 86_400
  ) -> [UInt8] {
    let text = String(
      decoding: base.policy(version: version, issuedIn: issued, expiresIn: expires), as: UTF8.self)
    guard !next.isEmpty else { return Array(text.utf8) }
    let keys = next.map { "\"\($0.publicKey.text)\"" }.joined(separator: ", ")
    return Array("{trusted_keys: {keys: [\(keys)], required_signatures: \(required)}, \(text.dropFirst())".utf8)
  }

  /// A bundle by some keys that does not rotate them.
  func bundle(_ version: Int, by keys: [Ed25519SecretKey], expiresIn: Int64 = 86_400) -> [UInt8] {
    PolicyBundle.sign(policy(version: version, expiresIn: expiresIn), keys: keys)
  }

  /// A bundle that rotates from one generation to another, signed by both.
  func rotation(_ version: Int, from old: Int, to new: Int, expiresIn: Int64 = 86_400) -> [UInt8] {
    PolicyBundle.sign(
      policy(version: version, next: generations[new], expiresIn: expiresIn), keys: generations[old] + generations[new])
  }

  func put(_ name: String, _ bytes: [UInt8]) throws { try base.put(name, bytes) }

  func source(_ bundles: [String] = ["b"]) throws -> BundleSource {
    var section = base.section(bundles)
    section.trustedKeys = configured.enumerated().map {
      base.located($1.publicKey.text, "policy.trusted_keys[\($0)]")
    }
    section.requiredSignatures = required
    return try BundleSource(section, file: "pinfold.json5")
  }

  var stateDirectory: String { "\(base.path)/state" }

  func cache() throws -> SealedCache {
    var warnings: [String] = []
    return try SealedCache(stateDirectory: stateDirectory, keyFile: nil, warnings: &warnings)
  }

  /// A keeper as after a restart.
  func keeper(_ bundles: [String] = ["b"]) throws -> PolicyKeeper {
    PolicyKeeper(source: try source(bundles), stateDirectory: stateDirectory, cache: try cache())
  }

  /// Puts a bundle in place, restarts, loads it; the words of what was refused, and the version in force.
  func restart(with bytes: [UInt8]) throws -> (version: UInt64?, words: [String]) {
    try put("b", bytes)
    var keeper = try self.keeper()
    let report = keeper.load(now: now)
    return (keeper.inForce?.document.version, report.refusals.map(\.word))
  }
}
