import Foundation
import Testing

extension Operation {
  /// Every command that README and docs show is run, page by page from top to bottom, in a network of its own where
  /// `example.com` and the hosts below it are a real HTTPS server.
  ///
  /// Guards: a command that was renamed, an option that went away, an example that never worked.
  @Suite struct PaperCommandTests {
    /// A page, and what it takes for granted before its first command.
    struct Page: Sendable, CustomTestStringConvertible {
      let path: String
      var given = ""
      var testDescription: String { path }
    }

    /// A block of commands, and the line of the page it stands on.
    struct Block: Sendable {
      let line: Int
      let commands: [String]
    }

    /// A policy with the pin of the server, signed, and a configuration that trusts the signer.
    private static let policy = """
      pin=$(pinfold pin --cert server.pem | head -n 1 | cut -d ' ' -f 1)
      cat > policy.json5 <<END
      { version: 1, issued_at: "2026-01-01T00:00:00Z", expires_at: "2045-01-01T00:00:00Z",
        ssl_pinning_config: { hosts: { "api.example.com": { pins: ["$pin"] } } } }
      END
      """
    private static let installed =
      policy + """

        pinfold keygen -o installed.key > installed.pub
        mkdir -p etc run lib
        pinfold sign -k installed.key policy.json5 -o etc/policy.signed.json > /dev/null
        cat > etc/pinfold.json5 <<END
        { state_dir: "$PWD/lib", audit: { file: "$PWD/lib/audit.jsonl" }, tls: { key_log: "$PWD/run/keylog" },
          policy: { bundles: ["policy.signed.json"], trusted_keys: ["$(cat installed.pub)"] } }
        END
        """
    /// It makes the pipe before it listens; a program that logged earlier would leave an ordinary file.
    private static let running =
      installed + "\nserving pinfold run -c etc/pinfold.json5\nuntil [ -p run/keylog ]; do sleep 0.02; done\n"

    static let pages = [
      Page(path: "README.md"),
      Page(
        path: "docs/policy.md",
        given: policy + "\ncp policy.json5 later.json5; pinfold keygen -o first.key; pinfold keygen -o second.key"),
      Page(path: "docs/operations.md", given: running),
      Page(path: "docs/pins.md", given: running),
      Page(path: "docs/verification.md", given: running),
      Page(path: "docs/threat-model.md", given: running),
    ]

    /// Where the papers put files, and where they lie in the test's folder.
    private static let places = ["/etc/pinfold": "etc", "/run/pinfold": "run", "/var/lib/pinfold": "lib"]

    static func blocks(of path: String) throws -> [Block] {
      let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
      let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
      var blocks: [Block] = []
      var open: Block?
      for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        if let block = open {
          if line.hasPrefix("```") {
            blocks.append(block)
            open = nil
          } else {
            open = Block(line: block.line, commands: block.commands + [String(line)])
          }
        } else if line == "```sh" {
          open = Block(line: index + 1, commands: [])
        }
      }
      return blocks
    }

    /// The commands as a script: what serves goes to the background, `make` is what runs this test.
    private static func script(_ page: Page, folder: String) throws -> String {
      var lines = [page.given]
      for block in try blocks(of: page.path) {
        lines.append("echo '\(page.path), line \(block.line)' >&2")
        for command in block.commands where !command.hasPrefix("make ") {
          let isServing = ["pinfold run", "pinfold pin-server"].contains { command.hasPrefix($0) }
          lines.append((isServing ? "serving " : "") + command)
        }
      }
      var text = lines.joined(separator: "\n")
      for (place, stand) in places { text = text.replacing(place, with: "\(folder)/\(stand)") }
      return text + "\n"
    }

    @Test("Each command of the page works", arguments: pages) func runs(page: Page) throws {
      let workspace = try Workspace("paper")
      let maker = CertificateMaker(folder: workspace.folder.path)
      try maker.authority("root", subject: "/CN=Paper test root")
      let identity = try maker.leaf(
        "server", key: "ec:P-256", names: "DNS:example.com,DNS:*.example.com", by: "root")
      #expect(identity.keyFile == workspace.path("server.key"))
      let script = try workspace.write("script.sh", Self.script(page, folder: workspace.folder.path))
      let world = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Programs/world.sh").path
      let binaries = URL(filePath: Pinfold.binary).deletingLastPathComponent().path
      let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
      let command = try Command(
        [
          "unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "bash", world,
          workspace.folder.path, script,
        ],
        environment: [
          "PATH": "\(binaries):\(path):/usr/sbin:/sbin", "SSL_CERT_FILE": workspace.path("root.pem"),
          "CURL_CA_BUNDLE": workspace.path("root.pem"),
        ], seconds: 50)
      #expect(command.succeeded, "\(command)\n\(workspace.read("served.log"))")
    }

    @Test("Every page that shows a command is among them") func allPages() throws {
      let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
      let docs = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "docs").path)
      let found = try (docs.map { "docs/\($0)" } + ["README.md"]).filter {
        try $0.hasSuffix(".md") && Self.blocks(of: $0).contains { $0.commands.contains { $0.hasPrefix("pinfold ") } }
      }
      #expect(Set(found).isSubset(of: Self.pages.map(\.path)))
      #expect(found.count >= 3)
    }
  }
}
