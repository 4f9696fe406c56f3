import Foundation

/// Real browsers without a window. They are large and not everywhere: `make test-browsers` installs them.
enum Browser: String, CaseIterable, Sendable {
  case chromium
  case firefox = "firefox-esr"

  /// Whether both browsers, and the tool that tells Firefox whom to trust, are installed.
  static let areInstalled = (allCases.map(\.rawValue) + ["certutil"]).allSatisfy { name in
    ["/usr/bin", "/usr/local/bin"].contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
  }

  /// Opens a page through the proxy until something has happened. How a browser ends says nothing: it shows a page of its
  /// own for an error, and may wait there for ever. `pins` are taken for trusted where the browser can be told so.
  func open(
    _ url: String, proxy: UInt16, pins: [String], keyLog: String?, until hasHappened: () throws -> Bool
  ) throws {
    let workspace = try Workspace("browser")
    let home = workspace.path("home")
    let profile = workspace.path("profile")
    for folder in [home, profile] {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    }
    // Chromium leaves directories behind in the one for temporary files.
    var variables = ["HOME": home, "TMPDIR": home, "MOZ_HEADLESS": "1"]
    if let keyLog { variables["SSLKEYLOGFILE"] = keyLog }
    let arguments: [String]
    switch self {
    case .chromium:
      let keys = pins.map { $0.dropFirst("sha256/".count) }.joined(separator: ",")
      arguments = [
        rawValue, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
        "--user-data-dir=\(profile)", "--proxy-server=http://127.0.0.1:\(proxy)",
        "--ignore-certificate-errors-spki-list=\(keys)", "--timeout=10000", "--dump-dom", url,
      ]
    case .firefox:
      let root = try Certificates.shared().rootFile
      try Command.output(["certutil", "-d", "sql:\(profile)", "-N", "--empty-password"])
      try Command.output(["certutil", "-d", "sql:\(profile)", "-A", "-n", "root", "-t", "C,,", "-i", root])
      try workspace.write("profile/user.js", Self.preferences(proxy: proxy))
      arguments = [rawValue, "--headless", "--profile", profile, "--screenshot", workspace.path("page.png"), url]
    }
    let child = try Child(arguments, environment: variables)
    do {
      try Wait.untilTrue("what \(rawValue) is to bring about with \(url)", seconds: 25, hasHappened)
    } catch {
      throw HarnessError("\(error)\n\(child.output)\(child.errors)")
    }
  }

  /// The proxy for everything, and nothing of the browser's own to fetch.
  private static func preferences(proxy: UInt16) -> String {
    let values: [(String, String)] = [
      ("network.proxy.type", "1"), ("network.proxy.ssl", "\"127.0.0.1\""), ("network.proxy.ssl_port", "\(proxy)"),
      ("network.proxy.http", "\"127.0.0.1\""), ("network.proxy.http_port", "\(proxy)"), ("network.trr.mode", "5"),
      ("network.captive-portal-service.enabled", "false"), ("network.connectivity-service.enabled", "false"),
      ("app.update.enabled", "false"), ("browser.shell.checkDefaultBrowser", "false"),
      ("datareporting.policy.dataSubmissionEnabled", "false"), ("toolkit.telemetry.enabled", "false"),
    ]
    return values.map { "user_pref(\"\($0)\", \($1));\n" }.joined()
  }
}
