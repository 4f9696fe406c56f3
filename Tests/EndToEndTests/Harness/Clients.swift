import Foundation

/// Real HTTPS clients that know nothing of Pinfold but its address as their proxy.
enum Client: String, CaseIterable, Sendable {
  case curl, wget, python, node, java

  static let scripts = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Clients").path

  /// Fetches the URL through the proxy, trusting the test root alone. `options` go to the client as they are.
  /// With `keyLog` the client logs its secrets there; Java cannot.
  func fetch(
    _ url: String = "https://api.pinfold.test/", proxy: UInt16, options: [String] = [], keyLog: String? = nil
  ) throws -> Command {
    let logging = keyLog.map { ["SSLKEYLOGFILE": $0] } ?? [:]
    let root = try Certificates.shared().rootFile
    let address = "http://127.0.0.1:\(proxy)"
    switch self {
    case .curl:
      return try Command(
        ["curl", "-q", "-sS", "--max-time", "15", "--proxy", address, "--cacert", root] + options + [url],
        environment: logging)
    case .wget:
      return try Command(
        ["wget", "--no-config", "-q", "-O", "-", "--tries=1", "--timeout=15", "--ca-certificate=\(root)"] + options
          + [url],
        environment: logging.merging(["https_proxy": address]) { $1 })
    case .python:
      return try Command(
        ["python3", "\(Self.scripts)/client.py", "\(proxy)", root, url] + (keyLog.map { [$0] } ?? []) + options)
    case .node:
      let flags = keyLog.map { ["--tls-keylog=\($0)"] } ?? []
      return try Command(["node"] + flags + ["\(Self.scripts)/client.js", "\(proxy)", root, url] + options)
    case .java:
      let store = try Self.trustStore.get()
      return try Command(
        [
          "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dhttps.proxyHost=127.0.0.1",
          "-Dhttps.proxyPort=\(proxy)", "-Djavax.net.ssl.trustStore=\(store)",
          "-Djavax.net.ssl.trustStorePassword=changeit",
        ] + options + ["\(Self.scripts)/Client.java", url], seconds: 30)
    }
  }

  /// Java's own form of the test root, made once.
  private static let trustStore = Result {
    let certificates = try Certificates.shared()
    let store = "\(certificates.folder)/trust.p12"
    try Command.output([
      "keytool", "-importcert", "-noprompt", "-alias", "root", "-file", certificates.rootFile, "-keystore", store,
      "-storepass", "changeit", "-storetype", "PKCS12",
    ])
    return store
  }
}
