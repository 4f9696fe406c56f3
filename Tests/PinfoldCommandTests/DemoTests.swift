import Glibc
import PinfoldModel
import Testing

@testable import PinfoldCommand

@Suite struct DemoSetupTests {
  let setup: DemoSetup

  init() throws { setup = try DemoSetup(port: 31_280, adminPort: 31_281) }

  @Test func `what it signed is what check takes, with a warning of nothing but what a demonstration needs`() async {
    let tool = await Tool("check", "-c", setup.configurationFile)
    #expect(tool.status == .good)
    #expect(tool.errors == [])
    #expect(tool.output.contains("listen: 127.0.0.1:31280"))
    #expect(tool.output.contains("admin: 127.0.0.1:31281"))
    #expect(tool.output.contains("hosts: \(DemoSite.all.count)"))
    #expect(tool.output.contains("unpinned: block"))
    let unexpected = tool.output.filter {
      $0.hasPrefix("warning: ") && !$0.contains("destinations.resolve") && !$0.contains("no backup")
    }
    #expect(unexpected == [])
  }

  @Test(arguments: DemoSite.all)
  func `each site serves a genuine certificate, and its pin is right or wrong as it says`(site: DemoSite) async throws {
    let configuration = try String(
      decoding: FileAccess.read(setup.configurationFile, limit: 1 << 16), as: UTF8.self)
    let place = try #require(configuration.firstRange(of: "\"\(site.name):443\": \"")).upperBound
    let address = String(configuration[place...].prefix { $0 != "\"" })
    let pin = await Tool("pin", site.name, "--ca-file", setup.caFile, "--connect", address)
    #expect(pin.status == .good)
    let served = try #require(pin.output.first).prefix { $0 != " " }
    let explained = await Tool("explain", "-c", setup.configurationFile, site.name)
    #expect(explained.status == .good)
    #expect(explained.output.contains("mode: enforce"))
    let pinned = try #require(explained.output.first { $0.hasPrefix("pins: ") }).dropFirst(6)
    #expect((pinned == served) == site.isPinnedRightly)
  }

  @Test func `nothing stays behind`() throws {
    let path: String
    do {
      let other = try DemoSetup(port: 1, adminPort: 2)
      path = other.caFile
      #expect(unsafe access(path, R_OK) == 0)
      withExtendedLifetime(other) {}
    }
    #expect(unsafe access(path, F_OK) != 0)
  }

  @Test func `both TLS versions pass and are refused`() {
    for version in [UInt16(0x0303), 0x0304] {
      for isRight in [true, false] {
        #expect(DemoSite.all.contains { $0.version == version && $0.isPinnedRightly == isRight })
      }
    }
  }
}

@Suite struct DemoTextTests {
  static let text = DemoText(port: 3128, adminPort: 9128, caFile: "/tmp/x/ca.pem", configFile: "/tmp/x/pinfold.json5")

  @Test func `curl reads no configuration and heeds no environment that would lead it past the proxy`() {
    let arguments = Self.text.curlArguments(DemoSite.all[0])
    #expect(arguments.first == "-q")
    #expect(arguments.firstRange(of: ["--noproxy", ""]) != nil)
    #expect(arguments.firstRange(of: ["--proxy", "http://127.0.0.1:3128"]) != nil)
    #expect(arguments.firstRange(of: ["--cacert", "/tmp/x/ca.pem"]) != nil)
    #expect(arguments.last == "https://good.pinfold.test/")
  }

  @Test(arguments: ["curl --proxy", "wget -qO-", "python3 -c", "node -e", "pinfold explain", "/metrics", "Ctrl-C"])
  func `the suggestions name each client and what to look at`(word: String) {
    #expect(Self.text.suggestions.contains(word))
  }

  @Test func `every suggested shell line is valid for a shell`() throws {
    for line in Self.text.suggestions.split(separator: "\n") where line.hasPrefix("  ") {
      let check = try ChildProcess("/bin/sh", ["-n", "-c", String(line)])
      #expect(check.status == 0, "\(line): \(check.errors)")
    }
  }

  struct Sample: CustomTestStringConvertible {
    let testDescription: String
    let exposition: String
    let value: Int
  }

  @Test(arguments: [
    Sample(testDescription: "a sample", exposition: "# HELP a b\na{b=\"c\"} 3\n", value: 3),
    Sample(testDescription: "no sample is zero", exposition: "a{b=\"d\"} 3\n", value: 0),
    Sample(testDescription: "a longer name is another one", exposition: "a{b=\"c\"}_x 3\na{b=\"c\"} 4\n", value: 4),
    Sample(testDescription: "nothing", exposition: "", value: 0),
  ])
  func counters(_ row: Sample) {
    #expect(DemoCheck.value(of: "a{b=\"c\"}", in: row.exposition) == row.value)
  }
}
