import Glibc
import PinfoldLoop
import Testing

/// A directory of a test's own, removed with what is in it.
private final class Folder {
  let path: String

  init() {
    var template = Array("/tmp/pinfold-loop-XXXXXX".utf8CString)
    let made = unsafe template.withUnsafeMutableBufferPointer { buffer in
      unsafe buffer.baseAddress.flatMap { unsafe mkdtemp($0) }.map { unsafe String(cString: $0) }
    }
    path = made ?? "/tmp"
  }

  deinit {
    unsafe _ = unlink(path + "/socket")
    unsafe _ = rmdir(path)
  }
}

@Suite struct UnixSocketTests {
  @Test func `bytes pass over a UNIX socket, and its file goes with the listener`() async throws {
    let folder = Folder()
    let path = folder.path + "/socket"
    let endpoint = try #require(Endpoint("unix:" + path))
    try await onLoop { loop in
      let acceptor = try Acceptor(loop, endpoint)
      let (client, server) = try await acceptor.pair(loop)
      try await client.send([1, 2], deadline: loop.soon)
      #expect(try await server.receive(max: 9, deadline: loop.soon) == [1, 2])
      #expect(client.peerAddress == nil && server.peerAddress == nil)
      #expect(client.localAddress == nil)
    }
    #expect(unsafe access(path, F_OK) != 0)
  }

  @Test func `a relay moves bulk between UNIX sockets too`() async throws {
    let folder = Folder()
    let endpoint = try #require(Endpoint("unix:" + folder.path + "/socket"))
    try await onLoop { loop in
      let acceptor = try Acceptor(loop, endpoint)
      let (client, nearClient) = try await acceptor.pair(loop)
      let (nearServer, server) = try await acceptor.pair(loop)
      var noise = Noise(seed: 9)
      let bytes = noise.bytes(3_000_000)
      loop.spawn {
        try? await server.send(bytes, deadline: loop.soon)
        server.close()
      }
      loop.spawn { _ = await Relay.run(client: nearClient, upstream: nearServer, idle: .seconds(20)) }
      #expect(try await client.readAll(deadline: loop.soon) == Fingerprint(bytes))
    }
  }

  @Test func `a stale socket file is replaced`() throws {
    let folder = Folder()
    let path = folder.path + "/socket"
    let endpoint = Endpoint.unix(path)
    let abandoned = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        unsafe bind(abandoned, raw, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    #expect(bound == 0)
    _ = close(abandoned)
    #expect(unsafe access(path, F_OK) == 0)
    _ = try ListeningSocket(endpoint)
  }

  @Test func `a socket at which somebody answers is left alone`() throws {
    let folder = Folder()
    let endpoint = Endpoint.unix(folder.path + "/socket")
    let first = try ListeningSocket(endpoint)
    #expect(throws: IOError.addressInUse) { _ = try ListeningSocket(endpoint) }
    #expect(first.endpoint == endpoint)
    #expect(unsafe access(folder.path + "/socket", F_OK) == 0)
  }

  /// Would catch a process that takes its successor's file with it.
  @Test func `a socket file that has another's place is left alone`() throws {
    let folder = Folder()
    let path = folder.path + "/socket"
    let first = try ListeningSocket(.unix(path))
    #expect(unsafe rename(path, path + ".old") == 0)
    let second = try ListeningSocket(.unix(path))
    Self.letGo(first)
    #expect(unsafe access(path, F_OK) == 0)
    Self.letGo(second)
    #expect(unsafe access(path, F_OK) != 0)
    #expect(unsafe unlink(path + ".old") == 0)
  }

  private static func letGo(_ socket: consuming ListeningSocket) {}

  @Test func `a file that is no socket is left alone`() throws {
    let folder = Folder()
    let path = folder.path + "/socket"
    let file = unsafe open(path, O_CREAT | O_WRONLY, 0o600)
    _ = close(file)
    #expect(throws: IOError.addressInUse) { _ = try ListeningSocket(.unix(path)) }
    #expect(unsafe access(path, F_OK) == 0)
  }

  @Test(
    "An endpoint is an address with a port, or unix: and a path",
    arguments: [
      ("127.0.0.1:80", true), ("[::1]:0", false), ("[::1]:8080", true), ("unix:/run/a.sock", true), ("unix:", false),
      ("localhost:80", false), ("unix:" + String(repeating: "a", count: 107), true),
      ("unix:" + String(repeating: "a", count: 108), false), ("127.0.0.1", false), ("unix:/a\0b", false),
    ])
  func endpoints(text: String, valid: Bool) {
    #expect((Endpoint(text)?.text == text) == valid)
  }
}
