import PinfoldModel

/// One host of the demonstration: a certificate that is genuine for it, and a pin that matches its key or does not.
struct DemoSite: Sendable {
  let name: String
  /// The only TLS version its server speaks, as on the wire.
  let version: UInt16
  /// Whether the policy pins the key the server has; else it pins a key nobody serves.
  let isPinnedRightly: Bool

  static let all = [
    DemoSite(name: "good.pinfold.test", version: 0x0304, isPinnedRightly: true),
    DemoSite(name: "good-tls12.pinfold.test", version: 0x0303, isPinnedRightly: true),
    DemoSite(name: "wrong.pinfold.test", version: 0x0304, isPinnedRightly: false),
    DemoSite(name: "wrong-tls12.pinfold.test", version: 0x0303, isPinnedRightly: false),
  ]

  /// `TLS 1.2` or `TLS 1.3`.
  var versionText: String { version == 0x0304 ? "TLS 1.3" : "TLS 1.2" }

  /// What its server answers.
  var greeting: String { "Hello from \(name) over \(versionText).\n" }
}
