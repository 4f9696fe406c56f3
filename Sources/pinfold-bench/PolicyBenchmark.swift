import FoundationEssentials
import Glibc
import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// Loads signed bundles of 10 and of many rules as the proxy does, and looks hosts up in both.
struct PolicyBenchmark {
  /// Rules of the large policy.
  let rules: Int

  private static let now = Timestamp(seconds: 1_800_000_000)
  private static let expiry = Timestamp(seconds: 1_900_000_000)
  /// Look-ups per measurement; each is repeated and the best counts, since noise only ever adds.
  private static let rounds = 2_000_000
  private static let repetitions = 7

  func run() {
    let path = FileManager.default.temporaryDirectory.path + "/pinfold-bench-\(UInt64.random(in: 0...UInt64.max)).json"
    defer { try? FileManager.default.removeItem(atPath: path) }
    do {
      let small = try load(10, path)
      let large = try load(rules, path)
      print("rules: \(small.table.count) and \(large.table.count)")
      print("bundle_bytes: \(large.bytes)")
      print("load_cpu_seconds: \(rounded(large.seconds))")
      print("load_peak_rss_mb: \(large.peakKilobytes / 1024)")
      compare(small.table, large.table)
    } catch {
      print("failed: \(error)")
    }
  }

  // MARK: Loading

  private struct Loaded {
    var table: RuleTable
    var bytes: Int
    var seconds: Double
    var peakKilobytes: Int
  }

  /// Signs a policy of `count` rules into a file, then measures reading it: file, envelope, signature, document.
  private func load(_ count: Int, _ path: String) throws -> Loaded {
    let (key, bytes) = try write(count, path)
    var section = PolicySection()
    let place = SourcePlace(line: 1, column: 1)
    section.bundles = [Located(path, place: place, path: "policy.bundles[0]")]
    section.trustedKeys = [Located(key, place: place, path: "policy.trusted_keys[0]")]
    section.maxBundleBytes = bytes
    let source = try BundleSource(section, file: "pinfold.json5")
    // proc(5): 5 sets the peak of resident memory back to what is resident now.
    try? Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
    var bundle: PolicyBundle?
    let seconds = Self.time {
      let seen = source.examine(source.readFiles(), at: Self.now, highest: 0, chain: TrustChain(source.trust))
      bundle = seen.newest
      for refusal in seen.refusals { print("refused: \(refusal)") }
    }
    guard let bundle else { throw Failure(text: "the bundle was refused") }
    return Loaded(
      table: bundle.document.table, bytes: bytes, seconds: seconds, peakKilobytes: Self.status("VmHWM:"))
  }

  private func write(_ count: Int, _ path: String) throws -> (key: String, bytes: Int) {
    let secret = try Ed25519SecretKey()
    let envelope = PolicyBundle.sign(document(count), keys: [secret])
    try Data(envelope).write(to: URL(filePath: path))
    return (secret.publicKey.text, envelope.count)
  }

  private func document(_ count: Int) -> [UInt8] {
    var text: [UInt8] = []
    text.append(
      contentsOf: """
        {"version":1,"issued_at":"\(Self.now.text)","expires_at":"\(Self.expiry.text)",\
        "ssl_pinning_config":{"hosts":{
        """.utf8)
    for number in 0..<count {
      let pin = Self.pin(number)
      text.append(contentsOf: "\(number == 0 ? "" : ",\n")\"\(Self.host(number))\":{\"pins\":[\"\(pin)\"]}".utf8)
    }
    text.append(contentsOf: "}}}".utf8)
    return text
  }

  private static func host(_ number: Int) -> String { "host-\(number).example.com" }

  /// A pin that is different for each rule, so that no two share memory.
  private static func pin(_ number: Int) -> String {
    let bytes = (0..<32).map { UInt8(truncatingIfNeeded: (number &+ 1) &* ($0 &* 2_654_435_761 &+ 40_503) >> 16) }
    return "sha256/" + Base64.encode(bytes)
  }

  // MARK: Looking up

  private func compare(_ small: RuleTable, _ large: RuleTable) {
    let few = (0..<10).map { Authority(host: .name(Self.host($0)), port: 443) }
    let unknown = (0..<10).map { Authority(host: .name("www\($0).elsewhere.example.org"), port: 443) }
    var random = SystemRandomNumberGenerator()
    let spread = (0..<100_000).map { _ in
      Authority(host: .name(Self.host(Int.random(in: 0..<large.count, using: &random))), port: 443)
    }
    report("same_hosts", measure(small, few), measure(large, few))
    report("unknown_hosts", measure(small, unknown), measure(large, unknown))
    // Here the caches of the processor show: hosts all over the large table, in memory that nobody touched lately. The
    // small table is asked for the same ones, so that the cost of reading the hosts themselves is on both sides.
    report("spread_hosts", measure(small, spread), measure(large, spread))
    let decisions = [small, large].map { table in
      var document = PolicyDocument(version: 1, issuedAt: Self.now, expiresAt: Self.expiry, table: table)
      document.enabled = true
      return measureDecisions(PolicySnapshot(.document(document), local: LocalPolicy()), few)
    }
    report("decisions", decisions[0], decisions[1])
  }

  private func report(_ name: String, _ small: Double, _ large: Double) {
    print("\(name)_ns: \(rounded(small)) and \(rounded(large)), ratio \(rounded(large / small))")
  }

  private func measure(_ table: RuleTable, _ hosts: [Authority]) -> Double {
    best {
      var found = 0
      var next = 0
      for _ in 0..<Self.rounds {
        if let rule = table.rule(for: hosts[next]) { found &+= rule.number }
        next = next + 1 == hosts.count ? 0 : next + 1
      }
      return found
    }
  }

  private func measureDecisions(_ snapshot: PolicySnapshot, _ hosts: [Authority]) -> Double {
    best {
      var inspected = 0
      var next = 0
      for _ in 0..<Self.rounds {
        if snapshot.decide(hosts[next], at: Self.now).action == .inspect { inspected &+= 1 }
        next = next + 1 == hosts.count ? 0 : next + 1
      }
      return inspected
    }
  }

  /// Nanoseconds per round of the fastest repetition.
  private func best(_ body: () -> Int) -> Double {
    var best = Double.infinity
    var sum = 0
    for _ in 0..<Self.repetitions { best = min(best, Self.time { sum &+= body() }) }
    // Keeps the work from being optimised away.
    if sum == Int.min { print(sum) }
    return best * 1e9 / Double(Self.rounds)
  }

  // MARK: Measuring

  private struct Failure: Error { var text: String }

  /// Seconds of processor time (clock_gettime(2)): a machine that is shared with others does not change them.
  private static func time(_ body: () -> Void) -> Double {
    let start = processorTime()
    body()
    return processorTime() - start
  }

  private static func processorTime() -> Double {
    var time = timespec()
    guard unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// A line of /proc/self/status in kilobytes (proc(5)).
  private static func status(_ name: String) -> Int {
    guard let data = try? Data(contentsOf: URL(filePath: "/proc/self/status")) else { return 0 }
    for line in String(decoding: data, as: UTF8.self).split(separator: "\n") where line.hasPrefix(name) {
      return Int(line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first ?? "") ?? 0
    }
    return 0
  }

  private func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
}
