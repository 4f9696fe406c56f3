import Glibc
import Synchronization

/// A name server on 127.0.0.1 for tests, on a thread of its own: answers by the first label of the name asked for.
///
/// `both`: A 192.0.2.1 and AAAA 2001:db8::1; `four`: A alone; `many`: 24 A and 12 AAAA; `gone`: NXDOMAIN; `broken`:
/// SERVFAIL; `empty`: no record; anything else: silence.
final class NameServer: Sendable {
  let port: UInt16
  private let descriptor: Int32
  private let questions = Atomic<Int>(0)

  var questionCount: Int { questions.load(ordering: .relaxed) }

  init() {
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
    port = UInt16(bigEndian: address.sin_port)
  }

  /// Serves until `stop`; to be run on a thread that may block.
  func run() {
    var buffer = [UInt8](repeating: 0, count: 1500)
    while true {
      var peer = sockaddr_storage()
      var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let count = unsafe withUnsafeMutablePointer(to: &peer) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
          unsafe recvfrom(descriptor, &buffer, buffer.count, 0, raw, &size)
        }
      }
      guard count > 12 else { return }
      questions.add(1, ordering: .relaxed)
      guard let reply = Self.reply(to: Array(buffer[..<count])) else { continue }
      unsafe withUnsafePointer(to: &peer) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
          unsafe _ = sendto(descriptor, reply, reply.count, 0, raw, size)
        }
      }
    }
  }

  /// Ends `run`.
  func stop() {
    _ = shutdown(descriptor, Int32(SHUT_RDWR))
  }

  deinit {
    _ = close(descriptor)
  }

  private static func reply(to question: [UInt8]) -> [UInt8]? {
    let length = Int(question[12])
    guard length > 0, question.count > 13 + length else { return nil }
    let label = String(decoding: question[13..<13 + length], as: UTF8.self).lowercased()
    guard let end = question[12...].firstIndex(of: 0), question.count >= end + 5 else { return nil }
    let type = question[end + 2]
    var code: UInt8 = 0
    var records: [[UInt8]] = []
    let four: [UInt8] = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2]
    let six: [UInt8] =
      [0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16, 0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11)
    switch label {
    case "both": records = [type == 1 ? four + [1] : six + [1]]
    case "four": records = type == 1 ? [four + [1]] : []
    case "many": records = type == 1 ? (1...24).map { four + [UInt8($0)] } : (1...12).map { six + [UInt8($0)] }
    case "gone": code = 3
    case "broken": code = 2
    case "empty": break
    default: return nil
    }
    let head: [UInt8] = [question[0], question[1], 0x81, 0x80 | code, 0, 1, 0, UInt8(records.count), 0, 0, 0, 0]
    return head + question[12..<end + 5] + records.flatMap(\.self)
  }
}
