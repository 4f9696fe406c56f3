import Foundation

/// Real HTTPS clients that know nothing of Pinfold but its address as their proxy.
enum Client: String, CaseIterable, Sendable {
  case curl, wget, python, node, java

  static let scripts = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Clients").path

  /// Fetches the URL through the proxy, trusting the test root alone. `options` go to the client as they are.
  /// With `keyLog` the client logs its secrets there; Java cannot. `user` is `user:password` for the proxy.
  func fetch(
    _ url: String = "https://api.pinfold.test/", proxy: UInt16, options: [String] = [], keyLog: String? = nil,
    user: String? = nil
  ) throws -> Command {
    let logging = keyLog.map { ["SSLKEYLOGFILE": $0] } ?? [:]
    let environment = user.map { ["PROXY_USER": $0] } ?? [:]
    let root = try Certificates.shared().rootFile
    let address = "http://127.0.0.1:\(proxy)"
    switch self {
    case .curl:
      return try Command(
        ["curl", "-q", "-sS", "--max-time", "15", "--proxy", address, "--cacert", root]
          + (user.map { ["--proxy-user", $0] } ?? []) + options + [url],
        environment: logging)
    case .wget:
      return try Command(
        ["wget", "--no-config", "-q", "-O", "-", "--tries=1", "--timeout=15", "--ca-certificate=\(root)"]
          + (user.map { user in
            let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return ["--proxy-user=\(parts[0])", "--proxy-password=\(parts.last ?? "")"]
          } ?? []) + options + [url],
        environment: logging.merging(["https_proxy": address]) { $1 })
    case .python:
      return try Command(
        ["python3", "\(Self.scripts)/client.py", "\(proxy)", root, url] + (keyLog.map { [$0] } ?? []) + options,
        environment: environment)
    case .node:
      let flags = keyLog.map { ["--tls-keylog=\($0)"] } ?? []
      return try Command(
        ["node"] + flags + ["\(Self.scripts)/client.js", "\(proxy)", root, url] + options,
        environment: environment)
    case .java:
      let store = try Self.trustStore.get()
      return try Command(
        [
          "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dhttps.proxyHost=127.0.0.1",
          "-Dhttps.proxyPort=\(proxy)", "-Djavax.net.ssl.trustStore=\(store)",
          "-Djavax.net.ssl.trustStorePassword=changeit",
          // Java sends no Basic credentials to a proxy of HTTPS unless it is told that it may.
        ] + (user == nil ? [] : ["-Djdk.http.auth.tunneling.disabledSchemes="]) + options
          + ["\(Self.scripts)/Client.java", url], environment: environment, seconds: 30)
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
