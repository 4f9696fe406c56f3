import Glibc
import Testing

@testable import PinfoldCommand

@Suite struct AuditCommandTests {
  private static func tunnel(_ time: String, _ host: String, _ rule: String, _ reason: String, id: String) -> String {
    #"{"time":"\#(time)","event":"tunnel","id":"\#(id)","client":"00","host":"\#(host)","rule":"\#(rule)","reason":"\#(reason)"}"#
  }

  private let place: Scratch

  init() throws {
    place = try Scratch()
    try place.write("pinfold.json5", #"{ audit: { file: "audit.jsonl" } }"#)
    try place.write("bare.json5", "{}")
    let first = [
      #"{"time":"2026-11-20T07:00:00.000Z","event":"start","version":"0"}"#,
      Self.tunnel("2026-11-20T08:00:00.500Z", "api.example.com:443", "*.example.com", "pin_mismatch", id: "a"),
      Self.tunnel("2026-11-20T09:00:00.000Z", "api.example.com:8443", "api.example.com", "chain_invalid", id: "b"),
      #"{"time":"2026-11-20T09:0"#,
    ]
    let second = [
      Self.tunnel("2026-11-21T08:00:00.000Z", "www.example.com:443", "*.example.com", "pin_mismatch", id: "c"),
      Self.tunnel("2026-11-21T09:00:00.000Z", "[2001:db8::1]:443", "2001:db8::1", "pin_match", id: "d"),
    ]
    try place.write("audit-2026-11-20.jsonl", first.joined(separator: "\n") + "\n")
    try place.write("audit-2026-11-21.jsonl", second.joined(separator: "\n") + "\n" + #"{"time":"2026-11-21T1"#)
    try place.write("audit-2026-11-22.jsonl.bak", "not ours\n")
  }

  private func audit(_ words: String...) -> Tool { Tool(["audit", "-c", place["pinfold.json5"]] + words) }
  private func ids(_ tool: Tool) -> String {
    tool.output.compactMap { $0.firstMatch(of: /"id":"(.)"/).map { String($0.1) } ?? "-" }.joined()
  }

  struct Row: CustomTestStringConvertible {
    let testDescription: String
    let words: [String]
    let ids: String
  }

  @Test(arguments: [
    Row(testDescription: "everything, oldest first", words: [], ids: "-abcd"),
    Row(testDescription: "a reason", words: ["--reason", "pin_mismatch"], ids: "ac"),
    Row(testDescription: "a host on every port", words: ["--host", "api.example.com"], ids: "ab"),
    Row(testDescription: "a host however it is written", words: ["--host", "API.Example.com."], ids: "ab"),
    Row(testDescription: "a host on one port", words: ["--host", "api.example.com:8443"], ids: "b"),
    Row(testDescription: "a rule", words: ["--host", "*.example.com"], ids: "ac"),
    Row(testDescription: "an address", words: ["--host", "2001:db8::1"], ids: "d"),
    Row(testDescription: "a host nobody asked for", words: ["--host", "example.com"], ids: ""),
    Row(testDescription: "a day", words: ["--since", "2026-11-21"], ids: "cd"),
    Row(testDescription: "a moment", words: ["--since", "2026-11-20T08:00:01Z"], ids: "bcd"),
    Row(testDescription: "the second of a record", words: ["--since", "2026-11-20T08:00:00Z"], ids: "abcd"),
    Row(testDescription: "an offset", words: ["--since", "2026-11-20T10:30:00+02:00"], ids: "bcd"),
    Row(
      testDescription: "all at once",
      words: ["--since", "2026-11-21", "--host", "www.example.com", "--reason", "pin_mismatch"], ids: "c"),
    Row(testDescription: "the future", words: ["--since", "2045-01-01"], ids: ""),
  ])
  func `records that hold all that is asked for are printed`(_ row: Row) {
    let tool = Tool(["audit", "-c", place["pinfold.json5"]] + row.words)
    #expect(tool.status == .good)
    #expect(ids(tool) == row.ids)
  }

  @Test func `a line that a crash cut is named where it is not the last, and skipped`() {
    let tool = audit()
    #expect(tool.errors == ["pinfold: \(place["audit-2026-11-20.jsonl"]):4: skipped: not a record"])
  }

  @Test func `a file that cannot be read is named, and the others are printed`() throws {
    try #require(symlinked("audit-2026-11-19.jsonl", to: "/nonexistent"))
    let tool = audit("--reason", "pin_mismatch")
    #expect(tool.status == .failed)
    #expect(ids(tool) == "ac")
    #expect(tool.errors.first?.contains(place["audit-2026-11-19.jsonl"]) == true)
  }

  private func symlinked(_ name: String, to target: String) -> Bool { unsafe symlink(target, place[name]) == 0 }

  @Test func `a line of any length is bounded`() throws {
    try place.write("audit-2026-11-19.jsonl", String(repeating: "x", count: 2_000_000) + "\n")
    let tool = audit("--since", "2026-11-19", "--reason", "chain_invalid")
    #expect(ids(tool) == "b")
    #expect(tool.errors.first?.contains("audit-2026-11-19.jsonl\":1") == false)
    #expect(tool.errors.first?.contains("audit-2026-11-19.jsonl:1: skipped") == true)
  }

  struct Mistake: CustomTestStringConvertible {
    let testDescription: String
    let words: [String]
    let message: String
  }

  @Test(arguments: [
    Mistake(testDescription: "a moment that is none", words: ["--since", "yesterday"], message: "no moment"),
    Mistake(
      testDescription: "a reason that is none", words: ["--reason", "pin_mismtch"],
      message: #"did you mean "pin_mismatch"?"#),
    Mistake(
      testDescription: "a reason like none", words: ["--reason", "foo"],
      message: "right would be one such as pin_mismatch"),
    Mistake(testDescription: "a host that is none", words: ["--host", "a b"], message: "is no host; right would be"),
    Mistake(testDescription: "an operand", words: ["more"], message: "unexpected argument"),
  ])
  func `a mistake is usage`(_ row: Mistake) {
    let tool = Tool(["audit", "-c", place["pinfold.json5"]] + row.words)
    #expect(tool.status == .usage)
    #expect(tool.output == [])
    #expect(tool.errors.first?.contains(row.message) == true, "\(tool.errors)")
  }

  @Test func `without audit.file there is nothing to read`() {
    let tool = Tool("audit", "-c", place["bare.json5"])
    #expect(tool.status == .config)
    #expect(tool.errors.first?.contains("audit.file") == true)
  }
}
