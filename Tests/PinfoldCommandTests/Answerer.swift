import Glibc
import Synchronization
import Testing

/// A server on a Unix socket that gives each path of an HTTP request its prepared answer, byte for byte, until it
/// goes away. A path it does not know is never answered.
final class Answerer: Sendable {
  private let descriptor: Int32
  private let path: String
  private let thread: pthread_t

  init(at path: String, _ answers: [String: String]) throws {
    self.path = path
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0 && listen(descriptor, 8) == 0)
    self.descriptor = descriptor
    let work = unsafe Unmanaged.passRetained(Work(descriptor, answers))
    var started = pthread_t()
    let result = unsafe pthread_create(
      &started, nil,
      { context in
        if let context = unsafe context { unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue().serve() }
        return nil
      }, work.toOpaque())
    try #require(result == 0)
    thread = started
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    pthread_join(thread, nil)
    close(descriptor)
    unsafe unlink(path)
  }

  private final class Work: Sendable {
    private let descriptor: Int32
    private let answers: [String: String]

    init(_ descriptor: Int32, _ answers: [String: String]) {
      self.descriptor = descriptor
      self.answers = answers
    }

    func serve() {
      var silent: [Int32] = []
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { break }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = unsafe recv(connection, &buffer, buffer.count, 0)
        let words = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
        guard words.count > 1, let answer = answers[String(words[1])] else {
          silent.append(connection)
          continue
        }
        _ = unsafe send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
        close(connection)
      }
      for connection in silent { close(connection) }
    }
  }
}
