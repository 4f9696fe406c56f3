import Foundation
import PinfoldModel
import Testing

@testable import PinfoldTelemetry

/// The judge of the text format is Prometheus's own checker (Debian package `prometheus`). Where it is missing these
/// tests fail: silence would look like approval.
@Suite struct PromtoolTests {
  private func check(_ page: [UInt8]) throws -> (status: Int32, output: String) {
    let candidates = ["/usr/bin/promtool", "/usr/local/bin/promtool"]
    let tool = try #require(
      candidates.first { FileManager.default.isExecutableFile(atPath: $0) },
      "promtool is missing: install the Debian package prometheus")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: tool)
    process.arguments = ["check", "metrics"]
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = output
    try process.run()
    try input.fileHandleForWriting.write(contentsOf: Data(page))
    try input.fileHandleForWriting.close()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: text, as: UTF8.self))
  }

  private static let process = ProcessSample(
    cpuSeconds: 1.25, residentBytes: 12_000_000, virtualBytes: 90_000_000, openDescriptors: 12, maxDescriptors: 1024,
    startSeconds: 1_795_219_200.5)

  @Test func `promtool finds nothing to say about a page with everything on it`() throws {
    let metrics = Metrics()
    let shard = metrics.makeShard()
    for reason in Reason.allCases {
      shard.tunnel(reason)
      for method in VerificationMethod.allCases {
        shard.verification(host: .pinned("api.example.com"), method: method, reason: reason, nanoseconds: 3_000_000)
      }
    }
    shard.verification(host: .pinned("odd\"\\\nname"), method: .none, reason: .pinMatch, nanoseconds: 1)
    metrics.pinFetch(service: "https://pins.example.com", .success)
    metrics.breakerTrip(host: "api.example.com", .suspend)
    let scrape = Scrape(
      version: "1.2.3", process: Self.process,
      policy: PolicySample(version: 7, expiry: Timestamp(seconds: 1_800_000_000))
    ) { _ in HostSample(state: .enforce, pinsExpiry: Timestamp(seconds: 1_800_000_000), failureRatio: 0.5) }
    let (status, output) = try check(metrics.render(scrape))
    #expect(output == "")
    #expect(status == 0)
  }

  @Test func `promtool finds nothing to say about the page of a process that just started`() throws {
    let metrics = Metrics()
    _ = metrics.makeShard()
    let (status, output) = try check(metrics.render(Scrape(version: "1.2.3", process: Self.process)))
    #expect(output == "")
    #expect(status == 0)
  }

  @Test func `promtool does object to a page that is wrong`() throws {
    #expect(try check(Array("pinfold_bad{host=\"a} 1\n".utf8)).status != 0)
  }
}
