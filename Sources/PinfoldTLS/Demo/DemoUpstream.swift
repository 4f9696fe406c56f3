import COpenSSL
import Glibc
import Synchronization

/// An HTTPS server on 127.0.0.1 that answers every request with one line of text: what `pinfold demo` and tests
/// connect to. Not for any other use.
///
/// A thread accepts, and each connection has a thread of its own with time-outs, since a client that is held by the
/// proxy must not keep another from being served. Ignores SIGPIPE in the whole process, as every server here does.
package final class DemoUpstream: Sendable {
  /// Most connections served at once; further ones are closed.
  private static let connectionLimit = 64
  /// Longest wait for a read or a write, in seconds.
  private static let waitSeconds = 10

  /// The port it listens on.
  package let port: UInt16
  private let listener: Int32
  private let server: DemoServerContext
  private let answer: [UInt8]
  private let state = Mutex<(connections: Int, stopped: Bool)>((0, false))

  /// Starts to listen on `port`, or on a free one if that is zero. `versions` are the lowest and the highest version
  /// spoken, 0x0301 to 0x0304; `text` is the answer's body.
  package init(
    _ identity: DemoIdentity, versions: ClosedRange<UInt16> = 0x0303...0x0304, text: String, port: UInt16 = 0
  ) throws(TLSError) {
    signal(SIGPIPE, SIG_IGN)
    server = try DemoServerContext(identity, versions)
    answer = Array(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: \(text.utf8.count)\r\nConnection: close\r\n\r\n\(text)"
        .utf8)
    let opened = try Self.listen(on: port)
    listener = opened.descriptor
    self.port = opened.port
    start { upstream in upstream.acceptAll() }
  }

  /// Closes the listening socket; connections that are open end by themselves.
  package func stop() {
    // shutdown(2) wakes accept(2) in the thread, which closes the descriptor once it sees `stopped`: not before the
    // lock is free, so the descriptor is still ours here.
    state.withLock { state in
      if !state.stopped { shutdown(listener, Int32(SHUT_RDWR)) }
      state.stopped = true
    }
  }

  private static func listen(on port: UInt16) throws(TLSError) -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .failed(call: "socket", detail: "errno \(errno)") }
    var on: Int32 = 1
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        unsafe bind(descriptor, generic, length) == 0 && Glibc.listen(descriptor, 64) == 0
          && getsockname(descriptor, generic, &length) == 0
      }
    }
    guard listening else {
      let code = errno
      close(descriptor)
      throw .failed(call: "listening on 127.0.0.1:\(port)", detail: "errno \(code)")
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }

  private func acceptAll() {
    while true {
      let connection = accept(listener, nil, nil)
      if state.withLock({ $0.stopped }) {
        if connection >= 0 { close(connection) }
        break
      }
      guard connection >= 0 else {
        // Out of descriptors, or a client that is gone already.
        usleep(10_000)
        continue
      }
      guard
        state.withLock({ state in
          guard state.connections < Self.connectionLimit else { return false }
          state.connections += 1
          return true
        })
      else {
        close(connection)
        continue
      }
      start { upstream in
        upstream.serve(connection)
        close(connection)
        upstream.state.withLock { $0.connections -= 1 }
      }
    }
    close(listener)
  }

  private func serve(_ connection: Int32) {
    var wait = timeval(tv_sec: Self.waitSeconds, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    unsafe setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &wait, size)
    unsafe setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &wait, size)
    server.answer(on: connection, with: answer)
  }

  /// Runs `work` on a detached thread of its own.
  private func start(_ work: @escaping @Sendable (DemoUpstream) -> Void) {
    final class Job: Sendable {
      let upstream: DemoUpstream
      let work: @Sendable (DemoUpstream) -> Void
      init(_ upstream: DemoUpstream, _ work: @escaping @Sendable (DemoUpstream) -> Void) {
        self.upstream = upstream
        self.work = work
      }
    }
    let job = unsafe Unmanaged.passRetained(Job(self, work))
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread, nil,
      { context in
        guard let context = unsafe context else { return nil }
        let job = unsafe Unmanaged<Job>.fromOpaque(context).takeRetainedValue()
        job.work(job.upstream)
        return nil
      }, job.toOpaque())
    if code == 0 { pthread_detach(thread) } else { unsafe job.release() }
  }
}
