import Glibc
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldServer

/// A port of 127.0.0.1 on which nobody answers, and a resolv.conf(5) that names it.
private final class SilentServer {
  let configuration: String
  private let descriptor: Int32

  init() throws {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        unsafe _ = bind(descriptor, raw, size)
        unsafe _ = getsockname(descriptor, raw, &size)
      }
    }
    self.descriptor = descriptor
    configuration = "/tmp/pinfold-silent-\(getpid())-\(UInt16(bigEndian: address.sin_port))"
    let text = "nameserver 127.0.0.1:\(UInt16(bigEndian: address.sin_port))\n"
    let file = unsafe open(configuration, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
    #expect(unsafe write(file, text, text.utf8.count) == text.utf8.count)
    close(file)
  }

  deinit {
    unsafe unlink(configuration)
    close(descriptor)
  }
}

/// Would catch a client that asks for names nobody answers for, and leaves no other a look-up.
@Suite struct FairResolverTests {
  /// Used on its loop's thread only.
  private struct OnLoop: @unchecked Sendable { let resolver: FairResolver }

  private static func ask(
    _ name: String, _ shared: OnLoop, for client: ClientIdentity, _ deadline: Deadline
  ) async throws -> ResolveError? {
    let host = try #require(HostName(name))
    do throws(ResolveError) {
      _ = try await shared.resolver.resolve(host, for: client, deadline: deadline)
      return nil
    } catch {
      return error
    }
  }

  @Test func `one client has no more look-ups than it leaves free`() async throws {
    try await onLoop { loop in
      let server = try SilentServer()
      let resolver = OnLoop(
        resolver: FairResolver(
          try Resolver(loop: loop, hostsFile: "/dev/null", configuration: server.configuration), limit: 8))
      let end = loop.deadline(after: .seconds(2))
      let greedy = (0..<4).map { number in
        Task(executorPreference: loop) { try await Self.ask("a\(number).test", resolver, for: .user("greedy"), end) }
      }
      await loop.sleep(for: .milliseconds(1))
      #expect(try await Self.ask("a4.test", resolver, for: .user("greedy"), end) == .overloaded)
      // An address needs no place.
      #expect(try await Self.ask("192.0.2.1", resolver, for: .user("greedy"), end) == nil)
      #expect(try await Self.ask("b.test", resolver, for: .user("modest"), end) == .timedOut)
      for task in greedy { #expect(try await task.value == .timedOut) }
      // What is over takes no place.
      let soon = loop.deadline(after: .milliseconds(50))
      #expect(try await Self.ask("a5.test", resolver, for: .user("greedy"), soon) == .timedOut)
      withExtendedLifetime(server) {}
    }
  }
}
