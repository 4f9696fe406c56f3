import Testing

@testable import PinfoldServer

@Suite struct StatusPageTests {
  private static func status(detail: String?, error: String?) -> Status {
    Status(
      version: "1", state: "serving", detail: detail, startedAt: "2026-11-21T00:00:00Z", now: "2026-11-21T00:00:01Z",
      listen: ["127.0.0.1:3128"], workers: 2, unpinned: "block", policy: nil, tunnels: .init(active: 1, limit: 9),
      lastReload: error.map { .init(at: "2026-11-21T00:00:00Z", result: "failure", error: $0) },
      pinServices: [
        .init(
          urls: [
            .init(url: "https://a.example", lastResult: "success", lastAt: nil, lastError: nil),
            .init(url: "https://b.example", lastResult: "status", lastAt: nil, lastError: "status: status 503"),
          ], domains: ["*.example.com"])
      ], pinRecords: 3)
  }

  @Test("Text of files and errors cannot become markup") func escapes() {
    let html = String(decoding: StatusPage(Self.status(detail: "<b>&", error: "\"<script>")).html, as: UTF8.self)
    #expect(html.contains("&lt;b&gt;&amp;"))
    #expect(html.contains("&quot;&lt;script&gt;"))
    #expect(!html.contains("<script"))
  }

  /// A mark that joins with its neighbour makes one character of both, and a browser sees two.
  @Test(
    "A joining mark hides no markup",
    arguments: [
      ("\u{600}<b>", "\u{600}&lt;b&gt;"), ("<\u{301}b", "&lt;\u{301}b"), ("\u{110bd}\"", "\u{110bd}&quot;"),
      ("&\u{20e0}lt;", "&amp;\u{20e0}lt;"),
    ])
  func joined(_ text: String, _ escaped: String) {
    #expect(StatusPage(Self.status(detail: text, error: nil)).html.firstRange(of: Array(escaped.utf8)) != nil)
  }

  @Test("Pin services stand on the page with the last answer of each URL") func services() {
    let html = String(decoding: StatusPage(Self.status(detail: nil, error: nil)).html, as: UTF8.self)
    #expect(html.contains("Pins of *.example.com"))
    #expect(html.contains("https://a.example: success; https://b.example: status: status 503"))
  }

  @Test("The JSON has the documented keys, in snake case") func jsonKeys() {
    let json = String(decoding: Self.status(detail: nil, error: "bad").json, as: UTF8.self)
    for key in [
      "version", "state", "started_at", "now", "listen", "workers", "unpinned", "tunnels", "last_reload",
      "pin_services", "last_error", "pin_records",
    ] {
      #expect(json.contains("\"\(key)\""), "\(key)")
    }
    #expect(json.hasSuffix("}\n"))
  }
}
