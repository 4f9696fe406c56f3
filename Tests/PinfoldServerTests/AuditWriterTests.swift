import Foundation
import Glibc
import PinfoldTelemetry
import Synchronization
import Testing

@testable import PinfoldServer

/// A directory of its own for a test, gone with it.
final class AuditPlace: Sendable {
  let path: String
  let name: AuditFileName

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "pinfold-audit-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    name = try #require(AuditFileName("\(path)/audit.jsonl"))
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func text(_ day: Int64) -> String { (try? String(contentsOfFile: name.path(on: day), encoding: .utf8)) ?? "-" }
  func put(_ text: String, _ day: Int64) throws {
    try text.write(toFile: name.path(on: day), atomically: true, encoding: .utf8)
  }
  var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

  func mode(_ day: Int64) -> mode_t {
    var status = stat()
    guard unsafe stat(name.path(on: day), &status) == 0 else { return 0 }
    return status.st_mode & 0o7777
  }
}

/// A disk that obeys the test: it takes so many bytes, and then says what it is told to.
final class BadDisk: Sendable {
  private let state = Mutex<(room: Int, syncs: Int, syncFailure: Int32)>((.max, 0, 0))

  var disk: AuditDisk {
    var disk = AuditDisk()
    disk.write = { [self] descriptor, bytes in
      let take = state.withLock { state in
        let take = min(state.room, bytes.count)
        if state.room != .max { state.room -= take }
        return take
      }
      guard take > 0 else {
        errno = ENOSPC
        return -1
      }
      return unsafe bytes.prefix(take).withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    }
    disk.sync = { [self] _ in
      state.withLock { state in
        state.syncs += 1
        guard state.syncFailure != 0 else { return 0 }
        errno = state.syncFailure
        return -1
      }
    }
    return disk
  }

  func room(_ bytes: Int) { state.withLock { $0.room = bytes } }
  func failSync(_ code: Int32) { state.withLock { $0.syncFailure = code } }
  var syncs: Int { state.withLock { $0.syncs } }
}

@Suite struct AuditWriterTests {
  private static func entry(_ text: String, day: Int64 = 10, durable: Bool = false) -> AuditEntry {
    AuditEntry(day: day, bytes: Array("\(text)\n".utf8), isDurable: durable)
  }

  @Test("Lines are appended, in a file of mode 0600 that no umask widens or narrows") func appends() throws {
    let place = try AuditPlace()
    let writer = AuditWriter(place.name)
    #expect(writer.write([Self.entry("a"), Self.entry("b")]) == .init(written: 2, error: nil))
    #expect(AuditWriter(place.name).write([Self.entry("c")]) == .init(written: 1, error: nil))
    #expect(place.text(10) == "a\nb\nc\n")
    #expect(place.mode(10) == 0o600)
  }

  @Test("At midnight the next file begins, and a clock set back goes to the earlier one again") func midnight() throws {
    let place = try AuditPlace()
    let writer = AuditWriter(place.name)
    let days: [Int64] = [10, 10, 11, 10, 11]
    let entries = days.enumerated().map { Self.entry("\($0)", day: $1) }
    #expect(writer.write(entries) == .init(written: 5, error: nil))
    #expect(place.text(10) == "0\n1\n3\n")
    #expect(place.text(11) == "2\n4\n")
  }

  @Test("Only durable lines are flushed, once for many") func flushes() throws {
    let place = try AuditPlace()
    let bad = BadDisk()
    let writer = AuditWriter(place.name, disk: bad.disk)
    _ = writer.write([Self.entry("a"), Self.entry("b")])
    #expect(bad.syncs == 0)
    _ = writer.write((0..<100).map { Self.entry("\($0)", durable: $0 == 50) })
    #expect(bad.syncs == 1)
    _ = writer.write([Self.entry("x", day: 10, durable: true), Self.entry("y", day: 11, durable: true)])
    #expect(bad.syncs == 3)
  }

  /// Would catch a record that a crash's half line swallows.
  @Test("A file cut inside its last line is repaired: the next record has a line of its own", arguments: [0, 1, 5, 12])
  func repair(cut: Int) throws {
    let place = try AuditPlace()
    let text = String("{\"a\":1}\n{\"b\":2}\n".dropLast(cut))
    try place.put(text, 10)
    _ = AuditWriter(place.name).write([Self.entry("next")])
    #expect(place.text(10) == text + (text.hasSuffix("\n") ? "next\n" : "\nnext\n"))
  }

  @Test("A full disk loses no line: what was cut is written again, whole") func full() throws {
    let place = try AuditPlace()
    let bad = BadDisk()
    let writer = AuditWriter(place.name, disk: bad.disk)
    bad.room(6)
    let entries = ["one", "two", "three"].map { Self.entry($0, durable: true) }
    let first = writer.write(entries)
    #expect(first.written == 1)
    #expect(first.error?.contains("No space left") == true, "\(first)")
    #expect(first.error?.contains(place.name.path(on: 10)) == true)
    bad.room(0)
    #expect(writer.write(Array(entries[1...])).written == 0)
    bad.room(.max)
    #expect(writer.write(Array(entries[1...])) == .init(written: 2, error: nil))
    #expect(place.text(10) == "one\ntw\ntwo\nthree\n")
  }

  @Test("A flush that fails is said, and the lines are not written twice") func syncFailure() throws {
    let place = try AuditPlace()
    let bad = BadDisk()
    let writer = AuditWriter(place.name, disk: bad.disk)
    bad.failSync(EIO)
    let outcome = writer.write([Self.entry("a", durable: true)])
    #expect(outcome.written == 1)
    #expect(outcome.error?.contains("flush") == true)
    bad.failSync(0)
    #expect(writer.write([Self.entry("b", durable: true)]) == .init(written: 1, error: nil))
    #expect(place.text(10) == "a\nb\n")
  }

  @Test("What stands in the way is said and left alone", arguments: ["directory", "pipe", "link"])
  func obstacle(kind: String) throws {
    let place = try AuditPlace()
    let path = place.name.path(on: 10)
    switch kind {
    case "directory": try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    case "pipe": #expect(unsafe mkfifo(path, 0o600) == 0)
    default: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "\(place.path)/elsewhere")
    }
    let outcome = AuditWriter(place.name).write([Self.entry("a")])
    #expect(outcome.written == 0)
    #expect(outcome.error?.contains(path) == true, "\(outcome)")
    #expect(place.names.count == 1)
  }

  @Test("A removed file is made anew, a moved one after reopening") func removed() throws {
    let place = try AuditPlace()
    let writer = AuditWriter(place.name)
    _ = writer.write([Self.entry("a")])
    try FileManager.default.removeItem(atPath: place.name.path(on: 10))
    _ = writer.write([Self.entry("b")])
    #expect(place.text(10) == "b\n")
    try FileManager.default.moveItem(atPath: place.name.path(on: 10), toPath: "\(place.path)/moved")
    _ = writer.write([Self.entry("c")])
    #expect(place.names == ["moved"])
    writer.reopen()
    _ = writer.write([Self.entry("d")])
    #expect(place.text(10) == "d\n")
  }

  @Test("Old files of our name go, and nothing else does") func purge() throws {
    let place = try AuditPlace()
    for day in [1, 6, 7, 8, 10, 12] as [Int64] { try place.put("x", day) }
    let strangers = ["audit-1970-01-02.jsonl.gz", "audit.jsonl", "other-1970-01-02.jsonl", "audit-1970-01-99.jsonl"]
    for name in strangers { try "x".write(toFile: "\(place.path)/\(name)", atomically: true, encoding: .utf8) }
    try FileManager.default.createDirectory(atPath: place.name.path(on: 2), withIntermediateDirectories: false)
    let removed = [1, 6].map { place.name.path(on: $0) }
    #expect(AuditWriter(place.name).purge(today: 10, retention: 3) == .init(removed: removed))
    let days: [Int64] = [2, 7, 8, 10, 12]
    #expect(place.names == (days.map(place.name.name) + strangers).sorted())
  }

  @Test("A directory that is gone is said, by writing and by purging") func gone() throws {
    let name = try #require(AuditFileName("/nonexistent/pinfold/audit.jsonl"))
    #expect(AuditWriter(name).write([Self.entry("a")]).error?.contains("/nonexistent/pinfold") == true)
    #expect(AuditWriter(name).purge(today: 10, retention: 3).problems.count == 1)
  }
}
