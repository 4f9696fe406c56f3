import Foundation
import Testing

extension Operation {
  /// The files that operators start from, judged by the programs that will read them.
  @Suite struct DeploymentTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()

    private func path(_ name: String) -> String { Self.root.appending(path: name).path }
    private func text(_ name: String) throws -> String { try String(contentsOfFile: path(name), encoding: .utf8) }

    @Test(
      "Prometheus reads its files, and the alerts fire on what they should",
      arguments: [
        ["check", "config", "conf/prometheus/prometheus.yml"], ["check", "rules", "conf/prometheus/alerts.yml"],
        ["test", "rules", "Tests/EndToEndTests/Alerts/alerts.test.yml"],
      ])
    func prometheus(arguments: [String]) throws {
      let check = try Command(["promtool"] + arguments.dropLast() + [path(arguments[2])])
      #expect(check.succeeded && !check.output.contains("FAILED"), "\(check)")
    }

    /// Guards: the image's promises. Each is one line that a later edit could lose without a sound.
    @Test(
      "The image is not root, ends by SIGTERM, and checks itself",
      arguments: [
        "USER 65532:65532", "STOPSIGNAL SIGTERM", #"CMD ["pinfold", "status"]"#, "FROM debian:bookworm-slim",
        "FROM swift:6.3-bookworm AS build", "--static-swift-stdlib",
      ])
    func image(line: String) throws {
      #expect(try text("docker/Dockerfile").contains(line))
    }

    @Test(
      "The examples run Pinfold with nothing it does not need",
      arguments: [
        ("docker/compose.yaml", ["read_only: true", "cap_drop: [ALL]", "no-new-privileges", "service_healthy"]),
        (
          "docker/kubernetes.yaml",
          [
            "restartPolicy: Always", "readOnlyRootFilesystem: true", "runAsNonRoot: true", "drop: [ALL]",
            "path: /readyz", "path: /healthz", "emptyDir", "configMap",
          ]
        ),
      ])
    func examples(file: String, promises: [String]) throws {
      let text = try text(file)
      for promise in promises { #expect(text.contains(promise), "\(promise)") }
    }

    /// Guards: a stranger who follows the file gets a configuration that Pinfold takes.
    @Test("The configuration in the ConfigMap passes the check once it has a key and a policy") func configMap() throws
    {
      let lines = try text("docker/kubernetes.yaml").split(separator: "\n", omittingEmptySubsequences: false)
      let start = try #require(lines.firstIndex(of: "  pinfold.json5: |")) + 1
      let configuration = lines[start...].prefix { $0.hasPrefix("    ") }.joined(separator: "\n")
      #expect(configuration.contains("YOUR PUBLIC KEY"))
      let workspace = try Workspace("configmap")
      func check() throws -> Command { try Pinfold.command("check", "-c", workspace.path("pinfold.json5")) }
      try workspace.write("policy.signed.json", "")
      try workspace.write("pinfold.json5", configuration)
      #expect(try check().ending == .exited(78), "the placeholder must not pass for a key")
      let key = try Command.output([Pinfold.binary, "keygen", "-o", workspace.path("key")])
      try workspace.write(
        "pinfold.json5",
        configuration.replacing("YOUR PUBLIC KEY", with: key.trimmingCharacters(in: .whitespacesAndNewlines)))
      let now = Date()
      let pin = "sha256/" + Data(repeating: 7, count: 32).base64EncodedString()
      let policy = try workspace.write(
        "policy.json5",
        """
        { version: 1, issued_at: "\(now.ISO8601Format())", expires_at: "\((now + 86400).ISO8601Format())",
          ssl_pinning_config: { hosts: { "api.example.com": { pins: ["\(pin)"] } } } }
        """)
      let signed = workspace.path("policy.signed.json")
      try Command.output([Pinfold.binary, "sign", "-k", workspace.path("key"), policy, "-o", signed])
      let accepted = try check()
      #expect(accepted.succeeded && accepted.output.contains("version: 1"), "\(accepted)")
    }

    /// The libraries of the Makefile and of the image's build stage are the same list.
    @Test("The image builds with the libraries that the Makefile installs") func libraries() throws {
      let wanted = try text("Makefile").matches(of: /lib:[a-z0-9]+=([a-z0-9-]+)/).map { String($0.1) }
      let image = try text("docker/Dockerfile")
      #expect(wanted.count >= 5)
      for library in wanted { #expect(image.contains(library), "\(library)") }
    }

    private static let isBookworm =
      (try? String(contentsOfFile: "/etc/os-release", encoding: .utf8))?.contains("VERSION_CODENAME=bookworm") ?? false

    /// Guards: a library that the binary gained and the image did not, which shows only where the image runs.
    @Test("The image has the package of every library that the binary is linked with", .enabled(if: isBookworm))
    func linkedLibraries() throws {
      let image = try #require(try text("docker/Dockerfile").split(separator: "FROM debian:bookworm-slim").last)
      // What every Debian has because its apt needs it.
      let packages = Set(image.split(whereSeparator: \.isWhitespace) + ["libc6", "libgcc-s1", "libstdc++6"])
      let libraries = try Command.output(["readelf", "-d", Pinfold.binary]).matches(of: /\(NEEDED\).*\[(.+)\]/)
        .map { String($0.1) }
        // Swift's own have no version in their names; the image has them in the binary.
        .filter { !$0.hasSuffix(".so") }
      #expect(libraries.count >= 10)
      for library in libraries {
        let owners = try Command.output(["dpkg", "-S", "*/\(library)"]).split(separator: "\n").map {
          $0.prefix { $0 != ":" }
        }
        #expect(owners.contains { packages.contains($0) }, "\(library) is in \(owners)")
      }
    }
  }
}
