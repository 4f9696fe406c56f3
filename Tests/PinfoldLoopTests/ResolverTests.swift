import Glibc
import PinfoldLoop
import PinfoldModel
import Testing

/// A file of a test's own.
private final class File {
  let path: String

  init(_ text: String) {
    var template = Array("/tmp/pinfold-resolver-XXXXXX".utf8CString)
    let descriptor = unsafe template.withUnsafeMutableBufferPointer { unsafe $0.baseAddress.map { unsafe mkstemp($0) } }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    unsafe _ = write(descriptor ?? -1, text, text.utf8.count)
    _ = close(descriptor ?? -1)
  }

  deinit {
    unsafe _ = unlink(path)
  }
}

private let hosts = """
  127.0.0.1 localhost
  192.0.2.7  pinned.example   alias.example
  2001:db8::7 pinned.example
  not-an-address broken.example
  """

/// Resolves one name with the given hosts file and name servers.
private func resolve(
  _ name: String, configuration: String = "", milliseconds: Int = 5000
) async throws -> Result<[IPAddress], ResolveError> {
  try await resolveTimed(name, configuration: configuration, milliseconds: milliseconds).result
}

/// The same with the time it took, measured on the loop: the way there and back waits for every other test's threads.
private func resolveTimed(
  _ name: String, configuration: String = "", milliseconds: Int
) async throws -> (result: Result<[IPAddress], ResolveError>, time: Duration) {
  let hostsFile = File(hosts)
  let servers = File(configuration)
  let host = try #require(HostName(name))
  return try await onLoop { loop in
    let resolver = try Resolver(loop: loop, hostsFile: hostsFile.path, configuration: servers.path)
    let start = Deadline.now
    let result: Result<[IPAddress], ResolveError>
    do throws(ResolveError) {
      result = .success(try await resolver.resolve(host, deadline: loop.deadline(after: .milliseconds(milliseconds))))
    } catch {
      result = .failure(error)
    }
    return (result, Deadline.now.duration(since: start))
  }
}

@Suite struct ResolverTests {
  @Test(
    "The hosts file answers without any server",
    arguments: [
      ("pinned.example", ["192.0.2.7", "2001:db8::7"]), ("alias.example", ["192.0.2.7"]), ("localhost", ["127.0.0.1"]),
    ])
  func hostsFile(name: String, expected: [String]) async throws {
    let found = try await resolve(name).get().map(\.text)
    #expect(found.sorted() == expected)
  }

  @Test("A literal is its own address", arguments: ["198.51.100.4", "2001:db8::9"])
  func literals(text: String) async throws {
    #expect(try await resolve(text) == .success([try #require(IPAddress(text))]))
  }

  @Test("Without a server a strange name fails, and in time", arguments: ["unknown.example", "broken.example"])
  func noServer(name: String) async throws {
    let (result, time) = try await resolveTimed(name, milliseconds: 200)
    #expect(throws: ResolveError.self) { try result.get() }
    // libevent alone would take 15 s to give up.
    #expect(time < .seconds(10))
  }

  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let name: String
    let expected: Result<[String], ResolveError>
  }

  static let rows = [
    Row(
      testDescription: "both families are asked for and given", name: "both.example",
      expected: .success(["192.0.2.1", "2001:db8::1"])),
    Row(testDescription: "one family is enough", name: "four.example", expected: .success(["192.0.2.1"])),
    Row(
      testDescription: "a name that does not exist is not found", name: "gone.example", expected: .failure(.notFound)),
    Row(testDescription: "a server that fails is a failure", name: "broken.example", expected: .failure(.failed)),
    Row(testDescription: "silence ends at the deadline", name: "silent.example", expected: .failure(.timedOut)),
  ]

  @Test("A name server's answer is told apart", arguments: rows)
  func answers(row: Row) async throws {
    let server = NameServer()
    let thread = Thread { server.run() }
    let result = try await resolve(
      row.name, configuration: "nameserver 127.0.0.1:\(server.port)\noptions timeout:1 attempts:1\n",
      milliseconds: row.expected == .failure(.timedOut) ? 150 : 5000)
    server.stop()
    thread.join()
    #expect(result.map { $0.map(\.text).sorted() } == row.expected)
    #expect(server.questionCount >= 2)
  }

  @Test func `an answer of many addresses is cut`() async throws {
    let server = NameServer()
    let thread = Thread { server.run() }
    let found = try await resolve("many.example", configuration: "nameserver 127.0.0.1:\(server.port)\n").get()
    server.stop()
    thread.join()
    #expect(found.count > 12 && found.count <= Resolver.maximalAddresses)
    #expect(Set(found).count == found.count)
  }

  /// Would catch a limit of questions on the wire that names without an answer fill.
  @Test func `names that nobody answers for hold up no other`() async throws {
    let server = NameServer()
    let thread = Thread { server.run() }
    try await onLoop { loop in
      let file = File("nameserver 127.0.0.1:\(server.port)\n")
      let resolver = Shared(try Resolver(loop: loop, hostsFile: "/dev/null", configuration: file.path))
      let (silent, good) = (try #require(HostName("silent.example")), try #require(HostName("both.example")))
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<100 {
          group.addTask {
            _ = try? await resolver.value.resolve(silent, deadline: loop.deadline(after: .seconds(8)))
          }
        }
        await loop.sleep(for: .milliseconds(50))
        let found = try? await resolver.value.resolve(good, deadline: loop.deadline(after: .seconds(4)))
        #expect(found?.count == 2)
      }
    }
    server.stop()
    thread.join()
  }

  enum Ending: CaseIterable, Sendable { case leaves, cancelled, wasCancelled }

  /// Would catch a tunnel that sits out its look-up although nobody waits for it. Longer than any test may take.
  @Test("A client that leaves, or is cancelled, ends its look-up and no other", arguments: Ending.allCases)
  func departure(_ ending: Ending) async throws {
    let server = NameServer()
    let thread = Thread { server.run() }
    try await onLoop { loop in
      let file = File("nameserver 127.0.0.1:\(server.port)\noptions timeout:100 attempts:1\n")
      let resolver = Shared(try Resolver(loop: loop, hostsFile: "/dev/null", configuration: file.path))
      let acceptor = try Acceptor(loop)
      let (client, watched) = try await acceptor.pair(loop)
      let (silent, good) = (try #require(HostName("silent.example")), try #require(HostName("both.example")))
      if ending == .wasCancelled { watched.cancel() }
      let timer = LoopTimer(loop: loop, after: .milliseconds(20)) {
        switch ending {
        case .leaves: client.close()
        case .cancelled: watched.cancel()
        case .wasCancelled: break
        }
      }
      await #expect(throws: ResolveError.departed) {
        try await resolver.value.resolve(silent, deadline: loop.deadline(after: .seconds(600)), watching: watched)
      }
      timer.cancel()
      let (other, stays) = try await acceptor.pair(loop)
      #expect(try await resolver.value.resolve(good, deadline: loop.soon, watching: stays).count == 2)
      // Its watch is over with the look-up: it can be watched again.
      #expect(stays.watchDeparture {})
      stays.endWatch()
      other.close()
    }
    server.stop()
    thread.join()
  }

  @Test func `more look-ups than may wait are refused at once`() async throws {
    try await onLoop { loop in
      let server = NameServer()
      let file = File("nameserver 127.0.0.1:\(server.port)\n")
      let resolver = Shared(try Resolver(loop: loop, hostsFile: "/dev/null", configuration: file.path))
      let host = try #require(HostName("silent.example"))
      let errors = await withTaskGroup(of: ResolveError?.self) { group in
        for _ in 0..<Resolver.maximalCount + 5 {
          group.addTask {
            do throws(ResolveError) {
              _ = try await resolver.value.resolve(host, deadline: loop.deadline(after: .milliseconds(300)))
              return nil
            } catch { return error }
          }
        }
        return await group.reduce(into: [ResolveError: Int]()) { counts, error in
          if let error { counts[error, default: 0] += 1 }
        }
      }
      #expect(errors == [.timedOut: Resolver.maximalCount, .overloaded: 5])
    }
  }
}
