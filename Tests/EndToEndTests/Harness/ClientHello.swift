/// A ClientHello built by hand, for clients that must not change their minds. TLS 1.2 only, so that what the
/// upstream answers is in the clear.
struct ClientHello {
  var serverName: String? = "api.pinfold.test"
  var version: UInt16 = 0x0303
  var suites: [UInt16] = [0xc02b, 0xc02f, 0xc02c, 0xc030, 0xc009, 0xc013, 0x009e]
  var extraExtensions: [UInt8] = []
  /// Bytes per record; the message is cut into records of this size.
  var recordSize = 16384

  private static func vector(_ bytes: [UInt8], width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> ($0 * 8)) } + bytes
  }

  private static func words(_ values: [UInt16]) -> [UInt8] {
    values.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
  }

  private static func field(_ type: UInt16, _ body: [UInt8]) -> [UInt8] { words([type]) + vector(body, width: 2) }

  private var extensions: [UInt8] {
    var result: [UInt8] = []
    if let serverName {
      let entry = [0] + Self.vector(Array(serverName.utf8), width: 2)
      result += Self.field(0, Self.vector(entry, width: 2))
    }
    result += Self.field(10, Self.vector(Self.words([23, 24, 29]), width: 2))
    result += Self.field(11, Self.vector([0], width: 1))
    let algorithms: [UInt16] = [0x0403, 0x0503, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0807]
    result += Self.field(13, Self.vector(Self.words(algorithms), width: 2))
    result += Self.field(0xff01, Self.vector([], width: 1))
    return result + extraExtensions
  }

  /// The records, each run with another random.
  var bytes: [UInt8] {
    var body = Self.words([version])
    body += (0..<32).map { _ in UInt8.random(in: 0...255) }
    body += Self.vector([], width: 1)
    body += Self.vector(Self.words(suites), width: 2)
    body += Self.vector([0], width: 1)
    body += Self.vector(extensions, width: 2)
    let message = [1] + Self.vector(body, width: 3)
    return stride(from: 0, to: message.count, by: recordSize).flatMap { start in
      [22, 3, 1] + Self.vector(Array(message[start..<min(start + recordSize, message.count)]), width: 2)
    }
  }
}
