import Glibc
import Synchronization
import Testing

/// A server on loopback that gives each path of an HTTP request its prepared answer, byte for byte, until it
/// goes away. A path it does not know is never answered.
final class Answerer: Sendable {
  /// Where it answers.
  let address: String
  private let descriptor: Int32
  private let thread: pthread_t

  init(_ answers: [String: String]) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, size) == 0 && listen(descriptor, 8) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    try #require(bound)
    self.address = "127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
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
