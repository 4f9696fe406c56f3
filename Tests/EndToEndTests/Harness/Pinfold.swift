import Foundation
import Glibc

/// The built binary, running with a policy signed by itself; killed and reaped with its owner.
final class Pinfold: Sendable {
  let port: UInt16
  let admin: UInt16
  let workspace: Workspace
  let child: Child
  let trustedKey: String

  /// Beside the test bundle that this code is loaded from.
  static let binary: String = {
    let bundles = [Bundle.main.executableURL, CommandLine.arguments.first.map { URL(filePath: $0) }]
    let folders = bundles.compactMap { $0?.resolvingSymlinksInPath().deletingLastPathComponent() }
    let built = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/debug")
    return (folders + [built]).map { $0.appending(path: "pinfold").path }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    } ?? "pinfold"
  }()

  /// Runs a command of the binary to its end.
  static func command(_ arguments: String..., input: String = "") throws -> Command {
    try Command([binary] + arguments, input: input)
  }

  /// Writes key, policy and configuration, starts, and waits until the admin port answers. With the workspace of one
  /// that has ended it goes on from that one's state. `prepare` may put other files beside them before the start.
  init(
    _ settings: Settings, in before: Workspace? = nil, prepare: (Workspace) throws -> Void = { _ in }
  ) throws {
    let workspace = try before ?? Workspace("run")
    self.workspace = workspace
    try? FileManager.default.removeItem(atPath: workspace.path("key"))
    trustedKey = try Command.output([Self.binary, "keygen", "-o", workspace.path("key")])
      .trimmingCharacters(in: .whitespacesAndNewlines)
    try Self.sign(settings, in: workspace)
    try prepare(workspace)
    var started: (proxy: UInt16, admin: UInt16, child: Child)?
    for isLast in [false, false, true] where started == nil {
      started = try Self.start(settings, trustedKey, in: workspace, isLast: isLast)
    }
    guard let started else { throw HarnessError("pinfold was not started") }
    (port, admin, child) = started
  }

  /// Ends it in order, so that everything is written.
  func end() throws {
    child.signal(SIGTERM)
    try child.wait()
  }

  /// Starts it on two ports that were free a moment ago; `nil` when somebody else was faster, unless it is the last try.
  private static func start(
    _ settings: Settings, _ trustedKey: String, in workspace: Workspace, isLast: Bool
  ) throws -> (UInt16, UInt16, Child)? {
    let (proxy, admin) = (try FreePort.next(), try FreePort.next())
    let text = settings.configurationText(proxy: proxy, admin: admin, trustedKey: trustedKey)
    try workspace.write("pinfold.json5", text)
    let limit = settings.descriptors.map { ["prlimit", "--nofile=\($0)"] } ?? []
    let child = try Child(
      limit + [binary, "run", "-c", workspace.path("pinfold.json5")], environment: settings.environment)
    do {
      try Wait.untilTrue("pinfold on port \(admin)") {
        if let ending = child.poll() { throw HarnessError("pinfold \(ending)\n\(child.errors)\(child.output)") }
        return try HTTP.get("/healthz", port: admin)?.status == 200
      }
    } catch {
      guard !isLast, child.errors.contains("address in use") else { throw error }
      return nil
    }
    return (proxy, admin, child)
  }

  /// Starts once more over the files of one that has ended, with these variables.
  init(after before: Pinfold, environment: [String: String] = [:]) throws {
    guard before.child.poll() != nil else { throw HarnessError("it still runs") }
    (workspace, port, admin, trustedKey) = (before.workspace, before.port, before.admin, before.trustedKey)
    child = try Child(
      [Self.binary, "run", "-c", workspace.path("pinfold.json5")], environment: environment)
    try Wait.untilTrue("pinfold on port \(admin)") {
      if let ending = child.poll() { throw HarnessError("pinfold \(ending)\n\(child.errors)\(child.output)") }
      return try HTTP.get("/healthz", port: admin)?.status == 200
    }
  }

  @discardableResult private static func sign(
    _ settings: Settings, in workspace: Workspace, keys: [String] = ["key"]
  ) throws -> String {
    let policy = try workspace.write("policy.json5", settings.policyText)
    let target = workspace.path("policy.signed.json")
    let signers = keys.flatMap { ["-k", workspace.path($0)] }
    try Command.output([binary, "sign"] + signers + [policy, "-o", target])
    return target
  }

  /// Signs another policy, with key files of the workspace, over the one before; where it lies.
  func sign(_ settings: Settings, keys: [String] = ["key"]) throws -> String {
    try Self.sign(settings, in: workspace, keys: keys)
  }

  /// Puts another policy and configuration in place and asks for a reload.
  func reload(_ settings: Settings) throws {
    try workspace.write(
      "pinfold.json5", settings.configurationText(proxy: port, admin: admin, trustedKey: trustedKey))
    try Self.sign(settings, in: workspace)
    child.signal(SIGHUP)
  }

  /// Puts any bytes in place of the signed policy and asks for a reload.
  func reload(brokenBundle text: String) throws {
    try workspace.write("policy.signed.json", text)
    child.signal(SIGHUP)
  }

  /// Every JSON line of the log so far.
  var log: [[String: Any]] {
    (child.output + child.errors).split(separator: "\n").compactMap {
      (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
    }
  }

  /// The decision lines so far, oldest first: those with a reason and a host.
  var decisions: [[String: Any]] { log.filter { $0["reason"] is String && $0["host"] is String } }

  /// Waits for that many decision lines and returns their reasons.
  func reasons(_ count: Int = 1, seconds: Double = 10) throws -> [String] {
    do {
      return try Wait.until("\(count) decision lines", seconds: seconds) {
        let reasons = decisions.compactMap { $0["reason"] as? String }
        return reasons.count >= count ? reasons : nil
      }
    } catch {
      throw HarnessError("\(error)\n\(child.errors)\(child.output)")
    }
  }

  /// The metrics now.
  func metrics() throws -> Metrics {
    guard let answer = try HTTP.get("/metrics", port: admin), answer.status == 200 else {
      throw HarnessError("no metrics on port \(admin)")
    }
    return Metrics(answer.body)
  }
}

/// The smallest HTTP client, for the admin port.
enum HTTP {
  struct Answer {
    let status: Int
    let head: String
    let body: String
  }

  /// `nil` when nobody listens or nothing readable comes back.
  static func get(_ path: String, port: UInt16) throws -> Answer? { try ask("GET", path, port: port) }

  /// Another method, with fields that each end in a line break.
  static func ask(_ method: String, _ path: String, fields: String = "", port: UInt16) throws -> Answer? {
    guard let socket = try Socket.connect(to: port) else { return nil }
    socket.send(
      Array("\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\(fields)\r\n".utf8))
    var bytes: [UInt8] = []
    while case .bytes(let more) = socket.receive() { bytes += more }
    let reply = ProxyReply(bytes)
    let words = reply.statusLine.split(separator: " ")
    guard words.count >= 2, let status = Int(words[1]) else { return nil }
    return Answer(status: status, head: reply.head, body: String(decoding: reply.rest, as: UTF8.self))
  }
}

/// Prometheus text, read back.
struct Metrics {
  let text: String
  private let samples: [(name: String, labels: Set<String>, value: Double)]

  init(_ text: String) {
    self.text = text
    samples = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
      guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
        return nil
      }
      let series = line[..<space]
      let brace = series.firstIndex(of: "{") ?? series.endIndex
      let labels = series[brace...].dropFirst().dropLast().split(separator: ",").map(String.init)
      return (String(series[..<brace]), Set(labels), value)
    }
  }

  /// The sum of the samples of that name that carry all the labels, written `name="value"`.
  func sum(_ name: String, _ labels: String...) -> Double {
    samples.filter { $0.name == name && $0.labels.isSuperset(of: labels) }.reduce(0) { $0 + $1.value }
  }

  /// Whether there is any sample of that name.
  func has(_ name: String) -> Bool { samples.contains { $0.name == name } }
}
