import Foundation
import Glibc

/// Lines of a key log as an app, or somebody else, would write them.
enum KeyLogLines {
  static let label = "SERVER_HANDSHAKE_TRAFFIC_SECRET"

  /// Digits of so many random bytes.
  static func digits(_ count: Int) -> String {
    (0..<count).map { _ in String(UInt16.random(in: 0x100...0x1ff), radix: 16).dropFirst() }.joined()
  }

  static func line(random: String, secret: String) -> String { "\(label) \(random) \(secret)\n" }

  /// The first line of that label in a key log on disk, once it is whole.
  static func first(in path: String) -> (random: String, secret: String)? {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
    // The last piece is an unfinished line, or empty.
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      let words = line.split(separator: " ").map(String.init)
      if words.count == 3, words[0] == label { return (words[1], words[2]) }
    }
    return nil
  }

  /// Writes into a pipe that somebody reads, in the given pieces with a pause between them.
  static func write(_ pieces: [String], to path: String) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw HarnessError("cannot open \(path): error \(errno)") }
    defer { close(descriptor) }
    for (number, piece) in pieces.enumerated() {
      if number > 0 { Thread.sleep(forTimeInterval: 0.03) }
      let bytes = Array(piece.utf8)
      let written = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard written == bytes.count else { throw HarnessError("wrote \(written) of \(bytes.count) bytes: \(errno)") }
    }
  }
}

extension ProxyReply {
  /// Whether of the upstream nothing came but the ServerHello record, after a HelloRetryRequest if `retries`: no
  /// encrypted record, no second message. That much, the one thing an app needs to log its secret, is released under
  /// a key log; a fatal alert may close it.
  func isServerHelloAlone(retries: Bool = false) -> Bool {
    guard statusLine.contains(" 200") else { return false }
    var hellos = 0
    var rest = rest[...]
    while let length = TLSRecords.firstLength(Array(rest.prefix(5))) {
      guard rest.count >= length else { return false }
      let record = Array(rest.prefix(length))
      rest = rest.dropFirst(length)
      switch record[0] {
      // The record's one message is a ServerHello and fills it.
      case 22:
        guard length > 9, record[5] == 2,
          Int(record[6]) << 16 | Int(record[7]) << 8 | Int(record[8]) == length - 9
        else { return false }
        hellos += 1
      // Only along with the HelloRetryRequest; the one of the flight is held.
      case 20: guard retries, hellos == 1, record == [20, 3, 3, 0, 1, 1] else { return false }
      case 21: guard record.count == 7, record[5] == 2, rest.isEmpty else { return false }
      default: return false
      }
    }
    return rest.isEmpty && hellos == (retries ? 2 : 1)
  }
}
