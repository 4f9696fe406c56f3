import Foundation
import Glibc
import Testing

extension Handshakes {
  /// What else is written into the pipe: anybody who may write there can write anything.
  ///
  /// The app here is curl logging into a file of its own, and the test decides what of it comes into the pipe. Guards:
  /// that no line is believed before a flight opened with it, and that no junk keeps an honest line from its tunnel.
  @Suite struct KeyLogPipeTests {
    /// A tunnel that waits for its line, behind a rule that demands one.
    private struct Waiting {
      let pinfold: Pinfold
      let pipe: String
      let app: Child
      let tap: Tap
      /// What the app logged.
      let random: String
      let secret: String

      init(seconds: Double = 5) throws {
        let certificates = try Certificates.shared()
        let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
        let settings = try KeyLogTests.settings(certificates.ecdsa.pin, port: server.port).with {
          $0.limits["handshake_seconds"] = seconds
        }
        pinfold = try Pinfold(settings)
        pipe = pinfold.workspace.path("keys")
        tap = try Tap(to: pinfold.port)
        owner = server
        let log = pinfold.workspace.path("log-of-the-app")
        app = try Child(
          [
            "curl", "-q", "-sS", "--max-time", "15", "--proxy", "http://127.0.0.1:\(tap.port)", "--cacert",
            certificates.rootFile, "https://api.pinfold.test/",
          ], environment: ["SSLKEYLOGFILE": log])
        (random, secret) = try Wait.until("the app's line") { KeyLogLines.first(in: log) }
      }

      private let owner: Servers.Running

      var line: String { KeyLogLines.line(random: random, secret: secret) }

      /// The end: whether the app was served, and the tunnel's reason.
      func finish() throws -> (served: Bool, reason: String) {
        let ending = try app.wait()
        return (ending == .exited(0) && app.output.contains(Servers.greeting), try pinfold.reasons()[0])
      }

      var leaked: Bool { !tap.connections.allSatisfy { ProxyReply($0.backward.all).isServerHelloAlone() } }
    }

    @Test("The app's line passes, whoever brings it and in whatever pieces", arguments: [1, 7, 100, 1000])
    func pieces(size: Int) throws {
      let waiting = try Waiting()
      let line = Array(waiting.line.utf8)
      // A few cuts stand for all: the reader's own tests cut everywhere.
      let first = min(size, line.count)
      let middle = min(first + size, line.count)
      let pieces = [line[..<first], line[first..<middle], line[middle...]].map { String(decoding: $0, as: UTF8.self) }
      try KeyLogLines.write(pieces.filter { !$0.isEmpty }, to: waiting.pipe)
      #expect(try waiting.finish() == (true, "pin_match"))
    }

    struct Forgery: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let line: @Sendable (_ random: String, _ secret: String) -> String
      let reason: String
    }

    static let forgeries = [
      Forgery(
        testDescription: "a made-up secret for the right random",
        line: { random, secret in KeyLogLines.line(random: random, secret: KeyLogLines.digits(secret.utf8.count / 2)) },
        reason: "key_not_proven"),
      Forgery(
        testDescription: "a secret of another suite's length",
        line: { random, secret in
          KeyLogLines.line(random: random, secret: KeyLogLines.digits(secret.utf8.count == 64 ? 48 : 32))
        }, reason: "key_not_proven"),
      Forgery(
        testDescription: "the right secret with its last digit changed",
        line: { random, secret in
          KeyLogLines.line(random: random, secret: secret.dropLast() + (secret.hasSuffix("0") ? "1" : "0"))
        }, reason: "key_not_proven"),
      Forgery(
        testDescription: "the right secret for another session",
        line: { _, secret in KeyLogLines.line(random: KeyLogLines.digits(32), secret: secret) },
        reason: "handshake_timeout"),
      Forgery(
        testDescription: "the right values under the client's label",
        line: { random, secret in "CLIENT_HANDSHAKE_TRAFFIC_SECRET \(random) \(secret)\n" },
        reason: "handshake_timeout"),
      Forgery(
        testDescription: "the right line without its end",
        line: { random, secret in String(KeyLogLines.line(random: random, secret: secret).dropLast()) },
        reason: "handshake_timeout"),
    ]

    @Test("A line that opens nothing allows nothing", arguments: forgeries) func forged(_ forgery: Forgery) throws {
      let waiting = try Waiting(seconds: 1)
      try KeyLogLines.write([forgery.line(waiting.random, waiting.secret)], to: waiting.pipe)
      #expect(try waiting.finish() == (false, forgery.reason))
      #expect(!waiting.leaked)
    }

    @Test("Forged lines in front of the app's do not hide it") func forgedBefore() throws {
      let waiting = try Waiting()
      let forged = (0..<3).map { _ in
        KeyLogLines.line(random: waiting.random, secret: KeyLogLines.digits(waiting.secret.utf8.count / 2))
      }
      try KeyLogLines.write([forged.joined(), waiting.line], to: waiting.pipe)
      #expect(try waiting.finish() == (true, "pin_match"))
    }

    @Test(
      "Junk in front of a line does not keep it from its tunnel",
      arguments: [
        "\n\n\r\n", "# a comment\nCLIENT_RANDOM 00 00\n", "SERVER_HANDSHAKE_TRAFFIC_SECRET\n",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET zz zz\n", String(repeating: "x", count: 60_000) + "\n",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET \(String(repeating: "a", count: 5000))\n", "\u{0}\u{1}\u{7f}é\n",
        "without an end: ", "SERVER_HAND", "SERVER_HANDSHAKE_TRAFFIC_SECRET 0011",
      ])
    func junk(_ junk: String) throws {
      let waiting = try Waiting()
      try KeyLogLines.write([junk, waiting.line], to: waiting.pipe)
      #expect(try waiting.finish() == (true, "pin_match"))
    }

    @Test("Several apps at once, beside a flood of random bytes, each find their own line") func flood() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let pinfold = try Pinfold(KeyLogTests.settings(certificates.ecdsa.pin, port: server.port))
      let pipe = pinfold.workspace.path("keys")
      let flood = try Child(["sh", "-c", "head -c 4000000 /dev/urandom > '\(pipe)'"])
      let apps = try (0..<8).map { _ in
        try Child(
          [
            "curl", "-q", "-sS", "--max-time", "15", "--proxy", "http://127.0.0.1:\(pinfold.port)", "--cacert",
            certificates.rootFile, "https://api.pinfold.test/",
          ], environment: ["SSLKEYLOGFILE": pipe])
      }
      for app in apps { #expect(try app.wait() == .exited(0), "\(app.errors)") }
      #expect(try pinfold.reasons(8) == Array(repeating: "pin_match", count: 8))
      #expect(try flood.wait() == .exited(0), "the flood was never drained")
    }

    @Test("Everybody may write into the pipe, its owner alone may read") func mode() throws {
      let waiting = try Waiting(seconds: 1)
      var about = stat()
      #expect(unsafe lstat(waiting.pipe, &about) == 0)
      #expect(about.st_mode & S_IFMT == S_IFIFO)
      #expect(about.st_mode & 0o777 == 0o622)
    }

    /// Guards: an app that is let in before there is a pipe makes a plain file at its path, which no pipe can take then.
    @Test("Who can connect finds the pipe") func pipeFirst() throws {
      let settings = try KeyLogTests.settings(Certificates.shared().ecdsa.pin, port: 1)
      let pinfold = try Pinfold(settings)
      let other = pinfold.workspace.path("other")
      let text = settings.with { ($0.keyLog, $0.stateDirectory) = (other, "late") }
        .configurationText(proxy: pinfold.port, admin: pinfold.admin, trustedKey: pinfold.trustedKey)
      let late = try Child([Pinfold.binary, "run", "-c", try pinfold.workspace.write("late.json5", text)])
      #expect(try late.wait() != .exited(0))
      #expect(late.errors.contains("address in use"), "\(late.errors)")
      var about = stat()
      #expect(unsafe lstat(other, &about) == 0 && about.st_mode & S_IFMT == S_IFIFO)
    }

    @Test("What stands at the path and is no pipe is left alone, and named", arguments: ["file", "folder", "link"])
    func notAPipe(kind: String) throws {
      let workspace = try Workspace("taken")
      let path = workspace.path("keys")
      switch kind {
      case "file": try workspace.write("keys", "precious")
      case "folder": try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      default:
        try workspace.write("target", "precious")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: workspace.path("target"))
      }
      let settings = try KeyLogTests.settings(Certificates.shared().ecdsa.pin, port: 1).with { $0.keyLog = path }
      let error = #expect(throws: HarnessError.self) { try Pinfold(settings) }
      let text = error?.description ?? ""
      #expect(text.contains("cannot open the key-log pipe \(path): "), "\(text)")
      #expect(text.contains("it has to be a named pipe, or not to exist yet"), "\(text)")
      if kind == "file" { #expect(workspace.read("keys") == "precious") }
      if kind == "link" { #expect(workspace.read("target") == "precious") }
    }
  }
}
