import Foundation
import PinfoldLoop
import PinfoldModel
import PinfoldTLS
import Testing

@Suite struct FailureTests {
  @Test(
    "A server that does not prove its name is refused, in OpenSSL's words",
    arguments: [
      (ReplyServer.Port.stranger, "localhost", "unable to get local issuer certificate"),
      (.wrongName, "localhost", "hostname mismatch"), (.wrongName, "127.0.0.1", "IP address mismatch"),
      (.expired, "localhost", "certificate has expired"),
    ])
  func untrusted(port: ReplyServer.Port, host: String, words: String) async throws {
    let result = try await fetch("/whole", from: port, host: host).result
    #expect(result == .failure(.tls("certificate verify failed: \(words)")))
  }

  @Test("Name and address are both good where the certificate has both", arguments: ["localhost", "127.0.0.1"])
  func names(host: String) async throws {
    #expect(try await fetch("/whole", from: .good, host: host).result.get().status == 200)
    #expect(try await fetch("/whole", from: .tls12, host: host).result.get().status == 200)
  }

  @Test("The system's authorities do not stand for ours") func otherTrust() async throws {
    let server = try ReplyServer.shared.get()
    let url = "https://localhost:\(server.port(.good))/whole"
    let result = try await fetch(url, security: try ClientContext(trusting: TrustStore())).result
    guard case .failure(.tls(let words)) = result else { return #expect(Bool(false), "\(result)") }
    #expect(words.hasPrefix("certificate verify failed: "))
  }

  @Test("TLS 1.1 is too old") func oldVersion() async throws {
    guard case .failure(.tls(let words)) = try await fetch("/whole", from: .tls11).result else {
      return #expect(Bool(false))
    }
    #expect(words.contains("version"))
  }

  @Test("An https URL without authorities to trust is refused before anything is sent") func noTrust() async throws {
    let port = try ReplyServer.shared.get().port(.good)
    #expect(try await fetch("https://localhost:\(port)/whole").result == .failure(.tls("no trusted authorities")))
  }

  @Test("A server that speaks no TLS is told from one that does") func plainServer() async throws {
    let server = try ReplyServer.shared.get()
    let url = "https://localhost:\(server.port(.plain))/whole"
    #expect(try await fetch(url, security: server.trust()).result == .failure(.tls("wrong version number")))
  }

  @Test("A connection reset in the handshake is the handshake's failure") func reset() async throws {
    let result = try await fetch("/whole", from: .reset).result
    guard case .failure(.tls) = result else { return #expect(Bool(false), "\(result)") }
  }

  @Test("Nobody listening is said so, with and without TLS", arguments: ["http", "https"])
  func refused(scheme: String) async throws {
    let server = try ReplyServer.shared.get()
    let free = try await onLoop { _ in
      let socket = try ListeningSocket(.tcp(SocketAddress(.v4(0x7f00_0001), port: 0)))
      guard case .tcp(let address) = socket.endpoint else { return UInt16(1) }
      return address.port
    }
    let result = try await fetch("\(scheme)://127.0.0.1:\(free)/", security: server.trust()).result
    #expect(result == .failure(.connect(.refused)))
  }

  @Test("A name without an address is the resolver's failure") func unknownName() async throws {
    let error = await #expect(throws: HTTPFetchError.self) {
      try await fetch("http://nowhere.invalid/", milliseconds: 500).result.get()
    }
    #expect(error?.step == .resolve)
  }

  @Test("The next address is tried when the first does not take the connection") func fallback() async throws {
    let server = try ReplyServer.shared.get()
    let hosts = FileManager.default.temporaryDirectory.appending(path: "pinfold-hosts-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: hosts) }
    // IPv6 goes first, and nobody listens there.
    try "::1 two.test\n127.0.0.1 two.test\n".write(toFile: hosts, atomically: true, encoding: .utf8)
    let result = try await fetch("http://two.test:\(server.port(.plain))/whole", hosts: hosts).result
    #expect(try result.get().status == 200)
  }
}

@Suite struct FetchErrorTests {
  @Test("Every failure is a line of its own that names its step") func words() {
    let errors: [HTTPFetchError] = [
      .resolve(.notFound), .connect(.refused), .tls("words"), .status(404), .tooLarge(limit: 5), .truncated, .malformed,
      .timedOut(.resolve), .timedOut(.connect), .timedOut(.tls), .timedOut(.reply), .cancelled,
    ]
    #expect(Set(errors.map(\.text)).count == errors.count)
    #expect(errors.allSatisfy { !$0.text.contains("\n") })
    #expect(
      errors.map(\.step) == [
        .resolve, .connect, .tls, .reply, .reply, .reply, .reply, .resolve, .connect, .tls, .reply, .reply,
      ])
  }
}

@Suite struct DeadlineTests {
  @Test(
    "One deadline ends every kind of waiting, and says in which step",
    arguments: [
      (ReplyServer.Port.plain, "/silent", HTTPFetchError.Step.reply), (.plain, "/slow-body", .reply),
      (.plain, "/slow-head", .reply), (.plain, "/endless-continue", .reply), (.good, "/silent", .reply),
      (.good, "/slow-body", .reply), (.good, "/slow-head", .reply), (.mute, "/whole", .tls),
    ])
  func timesOut(port: ReplyServer.Port, path: String, step: HTTPFetchError.Step) async throws {
    // Long enough for a busy machine to be past the steps before.
    let timed = try await fetch(path, from: port, limit: 1_000_000, milliseconds: 2000)
    #expect(timed.result == .failure(.timedOut(step)))
    #expect(timed.time >= .milliseconds(2000) && timed.time < .seconds(5), "\(timed.time)")
  }

  @Test("A deadline that has passed ends the fetch at once") func past() async throws {
    let timed = try await fetch("/whole", from: .mute, milliseconds: 0)
    guard case .failure(.timedOut) = timed.result else { return #expect(Bool(false), "\(timed.result)") }
  }

  @Test("A cancelled task ends its fetch at once", arguments: [ReplyServer.Port.plain, .good, .mute])
  func cancelled(port: ReplyServer.Port) async throws {
    let server = try ReplyServer.shared.get()
    let url = try #require(HTTPURL("\(port == .plain ? "http" : "https")://localhost:\(server.port(port))/silent"))
    let trust = server.trust()
    let timed = try await onLoop { loop in
      let start = Deadline.now
      let task = Task(executorPreference: loop) { () -> Fetched in
        do throws(HTTPFetchError) {
          let resolver = try? Resolver(loop: loop, configuration: "/dev/null")
          guard let resolver else { return .failure(.malformed) }
          let client = HTTPClient(loop: loop, resolver: resolver)
          let deadline = loop.deadline(after: .seconds(30))
          return .success(try await client.get(url, limit: 100, deadline: deadline, security: trust))
        } catch {
          return .failure(error)
        }
      }
      await loop.sleep(for: .milliseconds(200))
      task.cancel()
      return Timed(result: await task.value, time: Deadline.now.duration(since: start))
    }
    #expect(timed.result == .failure(.cancelled))
    #expect(timed.time < .seconds(10))
  }

  @Test("Two hundred fetches at once on one loop all end") func many() async throws {
    let server = try ReplyServer.shared.get()
    let trust = server.trust()
    let paths = ["/whole", "/cut", "/chunked", "/nothing", "/endless"]
    let port = server.port(.good)
    let counts = try await onLoop { loop in
      let client = HTTPClient(loop: loop, resolver: try Resolver(loop: loop, configuration: "/dev/null"))
      let lent = Lent(client)
      let tasks = (0..<200).map { number in
        Task(executorPreference: loop) { () -> Bool in
          guard let url = HTTPURL("https://localhost:\(port)\(paths[number % paths.count])") else { return false }
          do throws(HTTPFetchError) {
            let deadline = loop.deadline(after: .seconds(60))
            return try await lent.value.get(url, limit: 4096, deadline: deadline, security: trust).body == body
          } catch {
            return false
          }
        }
      }
      var whole = 0
      for task in tasks where await task.value { whole += 1 }
      return whole
    }
    #expect(counts == 80)
  }
}

private let body = Array(String(repeating: "0123456789", count: 10).utf8)

/// Lets tasks of one loop share what is not `Sendable`: they run on one thread.
private struct Lent<Value>: @unchecked Sendable {
  let value: Value
  init(_ value: Value) { self.value = value }
}
