import Foundation
import PinfoldModel
import Testing

@testable import PinfoldTelemetry

/// A hostile value and how the text form has to show it.
struct HostileValue: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var value: LogValue
  var plain: String

  static let all = [
    HostileValue(testDescription: "a bare word", value: .text("api.example.com:443"), plain: "api.example.com:443"),
    HostileValue(testDescription: "empty text", value: .text(""), plain: "\"\""),
    HostileValue(testDescription: "a space", value: .text("a b"), plain: "\"a b\""),
    HostileValue(testDescription: "a pair of its own", value: .text("verdict=allow"), plain: "\"verdict=allow\""),
    HostileValue(testDescription: "quotes and backslash", value: .text("a\"\\"), plain: #""a\"\\""#),
    HostileValue(testDescription: "a line of its own", value: .text("a\nb\r"), plain: #""a\nb\u{d}""#),
    HostileValue(testDescription: "a terminal's escape", value: .text("\u{1b}[2J"), plain: #""\u{1b}[2J""#),
    HostileValue(testDescription: "DEL and C1 controls", value: .text("\u{7f}\u{9b}"), plain: #""\u{7f}\u{9b}""#),
    HostileValue(testDescription: "reversed direction", value: .text("\u{202e}moc"), plain: #""\u{202e}moc""#),
    HostileValue(testDescription: "a line separator", value: .text("\u{2028}"), plain: #""\u{2028}""#),
    HostileValue(testDescription: "letters that look alike", value: .text("\u{430}pi"), plain: #""\u{430}pi""#),
    HostileValue(testDescription: "beyond the basic plane", value: .text("\u{1f980}"), plain: #""\u{1f980}""#),
    HostileValue(testDescription: "NUL", value: .text("\0"), plain: #""\u{0}""#),
    HostileValue(
      testDescription: "bytes that are no text", value: .bytes([0x41, 0xff, 0x00, 0x5c]), plain: #""A\\xff\\x00\\x5c""#),
  ]
}

@Suite struct LogEventTests {
  private let time = LogTime(milliseconds: 1_795_219_200_123)

  private func line(_ value: LogValue, _ format: LineFormat) -> String {
    String(decoding: LogEvent(.info, "message", [.init("key", value)]).render(format, at: time), as: UTF8.self)
  }

  @Test(arguments: HostileValue.all) func `a text line shows it escaped`(_ row: HostileValue) {
    #expect(line(row.value, .text) == "2026-11-21T00:00:00.123Z info message key=\(row.plain)\n")
  }

  @Test(arguments: HostileValue.all) func `a JSON line is ASCII, one line, and reads back`(_ row: HostileValue) throws {
    let bytes = Array(line(row.value, .json).utf8)
    #expect(bytes.dropLast().allSatisfy { $0 >= 0x20 && $0 < 0x7f })
    #expect(bytes.last == 0x0a)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: String])
    switch row.value {
    case .text(let text): #expect(object["key"] == text)
    case .bytes(let raw): #expect(object["key"] == LogText.spelled(raw))
    default: Issue.record("no text")
    }
    #expect(object["time"] == "2026-11-21T00:00:00.123Z")
    #expect(object["level"] == "info")
    #expect(object["message"] == "message")
  }

  @Test func `every byte alone leaves both forms one line of ASCII`() {
    for byte in UInt8.min...UInt8.max {
      for value in [LogValue.bytes([byte]), .text(String(Unicode.Scalar(byte)))] {
        for format in LineFormat.allCases {
          let bytes = Array(line(value, format).utf8)
          #expect(bytes.dropLast().allSatisfy { $0 >= 0x20 && $0 < 0x7f }, "byte \(byte)")
        }
      }
    }
  }

  @Test func `a long value is cut and says by how much`() {
    let long = String(repeating: "a", count: 5000)
    #expect(line(.text(long), .text).hasSuffix("a...(+3976 bytes)\"\n"))
    #expect(line(.text(long), .json).hasSuffix("a...(+3976 bytes)\"}\n"))
    #expect(line(.bytes(Array(long.utf8)), .text).count < 1200)
    #expect(line(.text(String(repeating: "\u{1f980}", count: 5000)), .json).utf8.count < 4000)
  }

  @Test func `numbers and flags stay what they are`() {
    #expect(line(.integer(-5), .json).contains("\"key\":-5}"))
    #expect(line(.unsigned(.max), .json).contains("\"key\":18446744073709551615}"))
    #expect(line(.decimal(0.25), .json).contains("\"key\":0.25}"))
    #expect(line(.flag(true), .json).contains("\"key\":true}"))
    #expect(line(.decimal(.infinity), .json).contains("\"key\":\"inf\"}"))
    #expect(line(.decimal(.nan), .json).contains("\"key\":\"nan\"}"))
  }

  @Test func `levels are ordered`() {
    #expect(Severity.allCases == Severity.allCases.sorted())
    #expect(Severity.debug < .info && Severity.warning < .error)
  }

  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"), (7, "1970-01-01T00:00:00.007Z"),
      (1_795_219_200_045, "2026-11-21T00:00:00.045Z"),
    ] as [(Int64, String)]) func `times have three digits behind the point`(milliseconds: Int64, text: String)
  {
    #expect(LogTime(milliseconds: milliseconds).text == text)
  }
}

@Suite struct RequestIDTests {
  @Test func `ids of one process never meet`() {
    let sources = [
      RequestIDSource(processTag: 0xabcde, worker: 0), RequestIDSource(processTag: 0xabcde, worker: 1),
      RequestIDSource(processTag: 0xabcde, worker: 32),
    ]
    let ids = sources.flatMap { source in (0..<2000).map { _ in source.make().description } }
    #expect(Set(ids).count == 6000)
  }

  @Test func `an id is short and spelled in unmistakable digits`() {
    #expect(RequestIDSource(processTag: 0, worker: 0).make().description == "0000-0-1")
    #expect(RequestID(process: 0xfffff, worker: .max, number: .max).description == "zzzz-1zzz-fzzzzzzzzzzzz")
    #expect(RequestID(process: 1, worker: 33, number: 32).description == "0001-11-10")
    #expect(RequestIDSource(processTag: .max, worker: 1).make().description == "zzzz-1-1")
  }
}

@Suite struct DecisionLineTests {
  private func line(_ verdict: Verdict) throws -> DecisionLine {
    var line = DecisionLine(
      id: RequestIDSource(processTag: 7, worker: 3).make(), client: "127.0.0.1",
      host: .text("api.example.com:443"), verdict: verdict, milliseconds: 12.34567, policyVersion: 7)
    line.rule = "*.example.com"
    line.source = "policy"
    line.mode = "enforce"
    line.upstream = SocketAddress("192.0.2.1:443")
    line.verdictMilliseconds = 3.5
    line.bytesUp = 517
    line.bytesDown = 4096
    return line
  }

  private func text(_ line: DecisionLine, _ format: LineFormat) -> String {
    String(decoding: line.event.render(format, at: LogTime(milliseconds: 0)), as: UTF8.self)
  }

  @Test func `an allowed tunnel is one info line with every field in its place`() throws {
    let key = try #require(Digest256([UInt8](repeating: 0, count: 32)))
    let line = try line(Verdict(.pinMatch, method: .inBand, leafKey: key))
    #expect(
      text(line, .text)
        == "1970-01-01T00:00:00.000Z info tunnel id=0007-3-1 client=127.0.0.1 host=api.example.com:443 "
        + "rule=*.example.com source=policy mode=enforce method=in_band verdict=allow reason=pin_match "
        + "key=\"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\" upstream=192.0.2.1:443 ms=12.346 "
        + "verdict_ms=3.5 bytes_up=517 bytes_down=4096 policy=7\n")
  }

  @Test func `a refusal is a warning with its detail`() throws {
    var line = try line(Verdict(.pinMismatch, method: .probe, detail: "leaf is not pinned"))
    line.probe = .openssl
    let text = text(line, .text)
    #expect(text.contains(" warning tunnel "))
    #expect(text.contains("verdict=refuse reason=pin_mismatch detail=\"leaf is not pinned\""))
    #expect(text.contains(" probe=openssl "))
    #expect(!text.contains("would_refuse"))
  }

  @Test func `a reported mismatch says what enforcing would have done`() throws {
    var line = try line(Verdict(.reportedMismatch, method: .inBand))
    line.wouldRefuse = true
    #expect(text(line, .text).contains(" warning tunnel "))
    #expect(text(line, .text).contains("verdict=allow reason=reported_mismatch would_refuse=true"))
  }

  @Test(arguments: Reason.allCases) func `the JSON line of each reason reads back`(reason: Reason) throws {
    var line = try line(Verdict(reason))
    line.host = .bytes(Array("\u{1b}]0;x\u{7}".utf8) + [0xff, 0x0a])
    let data = Data(line.event.render(.json, at: LogTime(milliseconds: 0)))
    let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    #expect(object["reason"] as? String == reason.rawValue)
    #expect(object["verdict"] as? String == (reason.allows ? "allow" : "refuse"))
    #expect(object["level"] as? String == (reason.isSuccess ? "info" : "warning"))
    #expect(object["host"] as? String == #"\x1b]0;x\x07\xff\x0a"#)
    #expect(object["bytes_down"] as? Int == 4096)
    #expect(data.filter { $0 == 0x0a }.count == 1)
  }
}
