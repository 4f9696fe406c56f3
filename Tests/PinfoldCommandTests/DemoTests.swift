import Glibc
import PinfoldModel
import PinfoldTLS
import Testing

@testable import PinfoldCommand

@Suite struct DemoSetupTests {
  let setup: DemoSetup

  init() throws { setup = try DemoSetup(port: 31_280, adminPort: 31_281) }

  @Test func `what it signed is what check takes, with a warning of nothing but what a demonstration needs`() {
    let tool = Tool("check", "-c", setup.configurationFile)
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
  func `each site serves a genuine certificate, and its pin is right or wrong as it says`(site: DemoSite) throws {
    let configuration = try String(
      decoding: FileAccess.read(setup.configurationFile, limit: 1 << 16), as: UTF8.self)
    let place = try #require(configuration.firstRange(of: "\"\(site.name):443\": \"")).upperBound
    let address = String(configuration[place...].prefix { $0 != "\"" })
    let pin = Tool("pin", site.name, "--ca-file", setup.caFile, "--connect", address)
    #expect(pin.status == .good)
    let served = try #require(pin.output.first).prefix { $0 != " " }
    let explained = Tool("explain", "-c", setup.configurationFile, site.name)
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

  @Test(arguments: [
    "curl --proxy", "wget -qO-", "python3 -c", "node -e", "java -D", "pinfold explain", "/metrics", "Ctrl-C",
  ])
  func `the suggestions name each client and what to look at`(word: String) {
    #expect(Self.text.suggestions.contains(word))
  }

  @Test func `the program is suggested as it was called`() {
    var text = Self.text
    text.program = "/opt/bin/pinfold"
    for word in ["explain", "check", "status"] { #expect(text.suggestions.contains("\n  /opt/bin/pinfold \(word) ")) }
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

@Suite struct DemoCommandTests {
  @Test(arguments: [
    (["--port", "0"], #"demo: --port "0" is no port; right would be 1 to 65535"#),
    (["--admin-port", "65536"], #"demo: --admin-port "65536" is no port; right would be 1 to 65535"#),
    (["--port", "+80"], #"demo: --port "+80" is no port; right would be 1 to 65535"#),
    (["--port", "9128"], "demo: proxy and admin site need two ports"),
  ])
  func `ports that cannot be are usage`(words: [String], message: String) {
    let tool = Tool(["demo"] + words)
    #expect(tool.status == .usage)
    #expect(tool.output == [])
    #expect(tool.errors == ["pinfold: \(message) (see \"pinfold demo --help\")"])
  }

  @Test(arguments: [("--port", "--admin-port"), ("--admin-port", "--port")])
  func `a port that is taken is named with the option that chooses another`(taken: String, free: String) throws {
    let now = WallClock.now
    let authority = try DemoAuthority(commonName: "Test Root", now: now)
    let occupant = try DemoUpstream(authority.issue(.init(commonName: "a.test", now: now)), text: "")
    defer { occupant.stop() }
    let other = try DemoUpstream(authority.issue(.init(commonName: "b.test", now: now)), text: "")
    let freePort = other.port
    other.stop()
    for _ in 0..<100 where (try? LocalPort.demandFree(freePort, option: "")) == nil { usleep(20_000) }
    let tool = Tool("demo", "--once", taken, "\(occupant.port)", free, "\(freePort)")
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    #expect(
      tool.errors == [
        "pinfold: port \(occupant.port) of 127.0.0.1 cannot be used: Address already in use; choose another with \(taken)"
      ])
  }
}

@Suite struct RunTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test func `run ends with 78 on a configuration that cannot be used`() throws {
    let path = try scratch.write("bad.json5", "{ listne: [] }")
    let tool = Tool("run", "-c", path)
    #expect(tool.status == .config)
    #expect(tool.errors.count == 1)
    #expect(tool.errors.first?.contains(#""listen""#) == true)
  }

  @Test func `run ends with 1 on an address it cannot have`() throws {
    let path = try scratch.write(
      "taken.json5", "{ listen: [\"192.0.2.1:3128\"], admin: \"192.0.2.1:9128\", state_dir: \".\" }")
    let tool = Tool("run", "-c", path)
    #expect(tool.status == .failed)
    #expect(tool.errors.first?.hasPrefix("pinfold: cannot listen on 192.0.2.1:3128: ") == true)
  }
}
