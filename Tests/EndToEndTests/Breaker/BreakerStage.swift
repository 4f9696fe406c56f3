import Foundation

/// A running proxy that watches, and clients that fail at it.
struct BreakerStage {
  /// What `/status` says of the breaker.
  struct Figures: Decodable {
    struct Trip: Decodable {
      var rule: String
      var host: String
      var client: String?
      var since: String
      var until: String?
      var ratio: Double
      var failures: Int
      var samples: Int
    }

    var enabled: Bool
    var autoDisable: Bool
    var alerts: [Trip]
    var suspensions: [Trip]
  }

  private struct Status: Decodable {
    var breaker: Figures?
  }

  static let host = "api.pinfold.test"

  var pinfold: Pinfold

  /// One host pinned to the first identity, and whatever answers at the port.
  static func settings(
    port: UInt16, autoDisable: Bool = true, samples: Int = 20, cooldown: Int = 600, more: String = "",
    rule: String = ""
  ) throws -> Settings {
    try Settings.pinned(Certificates.shared().ecdsa.pin, port: port, rule: rule).with {
      $0.policy =
        "monitoring: { auto_disable: \(autoDisable), min_samples: \(samples), cooldown_seconds: \(cooldown), \(more) }"
    }
  }

  /// Starts the proxy; `users` get the password `secret` in the credentials file `users`.
  init(_ settings: Settings, users: [String] = []) throws {
    pinfold = try Pinfold(settings) { workspace in
      for user in users {
        let made = try Pinfold.command("passwd", "-f", workspace.path("users"), user, input: "secret\n")
        guard made.succeeded else { throw HarnessError("\(made)") }
      }
    }
  }

  /// Opens so many tunnels and counts who served them: a certificate's name, or `refused`.
  @discardableResult
  func tunnels(_ count: Int, from source: String = "127.0.0.1", _ options: String...) throws -> [String: Int] {
    try tunnels(count, from: source, options)
  }

  @discardableResult
  func tunnels(_ count: Int, from source: String = "127.0.0.1", _ options: [String]) throws -> [String: Int] {
    let arguments = [
      "python3", "\(Client.scripts)/tunnels.py", "\(pinfold.port)", try Certificates.shared().rootFile, "\(count)",
      "--from", source,
    ]
    let client = try Command(arguments + options, seconds: 55)
    guard client.succeeded else { throw HarnessError("\(client)\n\(pinfold.child.errors)") }
    let names = client.output.split(separator: "\n").compactMap { $0.split(separator: " ").last.map(String.init) }
    return Dictionary(grouping: names) { $0 }.mapValues(\.count)
  }

  /// The breaker's part of `/status`.
  func figures() throws -> Figures {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let answer = try HTTP.get("/status", port: pinfold.admin),
      let figures = try decoder.decode(Status.self, from: Data(answer.body.utf8)).breaker
    else { throw HarnessError("no breaker in /status") }
    return figures
  }

  /// Trips counted for a host.
  func trips(_ action: String, host: String = Self.host) throws -> Int {
    Int(try pinfold.metrics().sum("pinfold_breaker_trips_total", #"host="\#(host)""#, #"action="\#(action)""#))
  }

  /// The state that the metric shows of a host.
  func state(host: String = Self.host) throws -> [String] {
    let metrics = try pinfold.metrics()
    return ["enforce", "report", "suspended", "disabled"].filter {
      metrics.sum("pinfold_enforcement", #"host="\#(host)""#, #"state="\#($0)""#) == 1
    }
  }

  func ratio(host: String = Self.host) throws -> Double {
    try pinfold.metrics().sum("pinfold_failure_ratio", #"host="\#(host)""#)
  }

  /// Log lines with this message.
  func lines(_ message: String) -> [[String: Any]] { pinfold.log.filter { $0["message"] as? String == message } }

  /// Every record of the audit that is on disk.
  func audit() throws -> String {
    try Command.output(["sh", "-c", "cat \(pinfold.workspace.folder.path)/audit-*.jsonl"])
  }

  static let suspended = "failure threshold crossed: enforcement suspended"
  static let alerted = "failure threshold crossed: pins do not match"
  static let rearmed = "enforcement re-armed"

  /// The files of the cache that hold what the breaker keeps.
  var kept: [URL] {
    let folder = pinfold.workspace.folder.appending(path: "state/cache")
    let all = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
    return all.filter { $0.lastPathComponent.hasPrefix("breaker-") && $0.pathExtension.isEmpty }
  }
}
