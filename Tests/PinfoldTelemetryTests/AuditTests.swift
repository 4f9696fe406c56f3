import Foundation
import PinfoldModel
import Testing

@testable import PinfoldTelemetry

@Suite struct AuditRecordTests {
  private static let time = LogTime(milliseconds: 1_795_219_200_007)

  @Test("A record is one JSON object with its time first") func form() throws {
    let record = AuditRecord(.policyAccepted, [.init("file", .text("a b")), .init("policy", .unsigned(7))])
    #expect(
      String(decoding: record.render(at: Self.time), as: UTF8.self)
        == #"{"time":"2026-11-21T00:00:00.007Z","event":"policy_accepted","file":"a b","policy":7}"# + "\n")
    #expect(record.isDurable)
  }

  /// Would catch a peer that writes records of its own, or speaks to the terminal of whoever reads them.
  @Test(
    "Nothing that is written ends the line, forges a member or leaves ASCII",
    arguments: [
      "a\nb", "\",\"verdict\":\"allow", "\\", "\u{1b}[2J", "\u{2028}", "\u{202e}", "ü", "😀", "\0",
      String(repeating: "x", count: 100_000),
    ])
  func hostile(text: String) throws {
    let record = AuditRecord(.tunnel, [.init("detail", .text(text)), .init("verdict", .text("refuse"))])
    let bytes = record.render(at: Self.time)
    #expect(bytes.dropLast().allSatisfy { (0x20..<0x7f).contains($0) })
    #expect(bytes.last == 0x0a)
    #expect(bytes.count < 8192)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    #expect(Set(object.keys) == ["time", "event", "detail", "verdict"])
    #expect(object["verdict"] as? String == "refuse")
    if text.utf8.count < 1024 { #expect(object["detail"] as? String == text) }
  }

  @Test("The words of events are part of the interface") func events() {
    #expect(
      AuditEvent.allCases.map(\.rawValue) == [
        "tunnel", "policy_accepted", "policy_refused", "policy_expired", "keys_rotated", "reload", "pins", "breaker",
        "trust", "start", "stop",
      ])
  }
}

@Suite struct AuditFileNameTests {
  struct Row: CustomTestStringConvertible {
    let testDescription: String
    let path: String
    let file: String
  }

  @Test(arguments: [
    Row(testDescription: "the usual path", path: "/var/log/audit.jsonl", file: "/var/log/audit-2026-11-21.jsonl"),
    Row(testDescription: "a path without directory", path: "audit.jsonl", file: "./audit-2026-11-21.jsonl"),
    Row(testDescription: "a file in the root", path: "/audit.jsonl", file: "/audit-2026-11-21.jsonl"),
    Row(testDescription: "no ending", path: "/a.d/audit", file: "/a.d/audit-2026-11-21"),
    Row(testDescription: "two endings", path: "/a/b.c.d", file: "/a/b.c-2026-11-21.d"),
    Row(testDescription: "a hidden file", path: "/a/.audit", file: "/a/.audit-2026-11-21"),
  ])
  func `the day stands in front of the ending`(_ row: Row) throws {
    let name = try #require(AuditFileName(row.path))
    #expect(name.path(on: 20_778) == row.file)
    #expect(name.day(of: name.name(on: 20_778)) == 20_778)
  }

  @Test("A path that names no file is none", arguments: ["", "/", "/var/log/"]) func none(path: String) {
    #expect(AuditFileName(path) == nil)
  }

  /// Would catch a purge that removes somebody else's files.
  @Test(
    "Only names of exactly our form have a day",
    arguments: [
      "audit.jsonl", "audit-2026-11-21.jsonl.gz", "xaudit-2026-11-21.jsonl", "audit-2026-11-2.jsonl",
      "audit-2026-02-30.jsonl", "audit-2026-13-01.jsonl", "audit-20261121.jsonl", "audit--026-11-21.jsonl",
      "audit-2026-11-21Z.jsonl", "audit-2026-11-21.json", "Audit-2026-11-21.jsonl", "audit-2026-11-21x.jsonl",
      "audit-２026-11-21.jsonl", "audit-2026/11/21.jsonl", "audit-2026-11-21 .jsonl",
    ])
  func strangers(name: String) throws {
    #expect(try #require(AuditFileName("/var/log/audit.jsonl")).day(of: name) == nil)
  }

  @Test("A day ends at midnight UTC, before 1970 too") func days() {
    #expect(AuditDay.day(of: LogTime(milliseconds: 86_399_999)) == 0)
    #expect(AuditDay.day(of: LogTime(milliseconds: 86_400_000)) == 1)
    #expect(AuditDay.day(of: LogTime(milliseconds: -1)) == -1)
    #expect(AuditDay.day(of: LogTime(milliseconds: -86_400_000)) == -1)
    #expect(AuditDay.day(of: -86_401) == -2)
  }
}
