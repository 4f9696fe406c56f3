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

    /// The libraries of the Makefile and of the image's build stage are the same list.
    @Test("The image builds with the libraries that the Makefile installs") func libraries() throws {
      let wanted = try text("Makefile").matches(of: /lib:[a-z0-9]+=([a-z0-9-]+)/).map { String($0.1) }
      let image = try text("docker/Dockerfile")
      #expect(wanted.count >= 5)
      for library in wanted { #expect(image.contains(library), "\(library)") }
    }
  }
}
