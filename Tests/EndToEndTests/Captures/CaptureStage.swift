import Foundation
import Synchronization

/// One running proxy with a policy for every capture under every variant, each under a port of its own, and the upstream
/// that plays them. Started once for all rows: what they do is a matter of milliseconds.
final class CaptureStage: Sendable {
  /// A row's place on the stage.
  struct Place: Sendable {
    let authority: String
    let policy: CapturePolicy
  }

  let replay: CaptureReplay
  let pinfold: Pinfold
  private let keyLog: String?
  private let places: [String: Place]
  private let log: DecisionLog

  /// - Parameters:
  ///   - places: for each name the capture whose key is pinned, the policy, and the host of the CONNECT line.
  ///   - keyLog: whether there is a pipe for the clients' secrets.
  init(
    _ places: [(name: String, capture: Capture, policy: CapturePolicy, host: String)], keyLog: Bool
  ) throws {
    let replay = try CaptureReplay()
    self.replay = replay
    var settings = Settings()
    settings.rootFile = Capture.rootFile
    settings.resumption = keyLog ? "refuse" : "probe"
    settings.keyLog = keyLog ? "keys" : nil
    settings.limits["handshake_seconds"] = 3
    var byName: [String: Place] = [:]
    for (index, place) in places.enumerated() {
      let authority = "\(place.host):\(10_000 + index)"
      settings.hosts[authority] = try Self.rule(place.capture, place.policy)
      settings.resolve[authority] = replay.port
      byName[place.name] = Place(authority: authority, policy: place.policy)
    }
    self.places = byName
    pinfold = try Pinfold(settings)
    self.keyLog = keyLog ? pinfold.workspace.path("keys") : nil
    log = DecisionLog(pinfold.child.errorsPath)
  }

  private static func rule(_ capture: Capture, _ policy: CapturePolicy) throws -> String {
    // A resumption is judged by the key of the handshake it stems from.
    var facts = capture.facts
    if facts.leafSpkiSha256 == nil, let pair = facts.pair { facts = try Capture.named(pair).facts }
    let strange = "sha256/\(Data(repeating: 7, count: 32).base64EncodedString())"
    let pin =
      switch policy.pin {
      case .leaf: (facts.leafSpkiSha256 ?? facts.rawPublicKeySpkiSha256).map { "sha256/\($0)" }
      case .certificate: facts.leafSha256.map { "cert-sha256/\($0)" }
      case .other: strange
      }
    let optional = policy.mayMissName ? #", sni: "optional""# : ""
    return """
      { pins: ["\(pin ?? strange)"], tls13: "\(policy.tls13)", verify_chain: \(policy.verifyChain)\(optional) }
      """
  }

  func place(_ name: String) throws -> Place {
    guard let place = places[name] else { throw HarnessError("no place for \(name)") }
    return place
  }

  /// Plays a capture at a place; what came out, and the decision line.
  func play(
    _ capture: Capture, at place: Place, piece: Int = .max
  ) throws -> (result: CaptureReplay.Result, decision: Decision) {
    let result = try replay.play(
      capture, proxy: pinfold.port, authority: place.authority, piece: piece, keyLog: keyLog)
    return (result, try log.next(of: place.authority))
  }

  /// What a decision line says.
  struct Decision: Sendable {
    let reason: String
    let method: String
    let text: String
  }

  /// The decision lines as they are written, each handed out once.
  private final class DecisionLog: Sendable {
    private struct State {
      var offset: UInt64 = 0
      var rest = ""
      var waiting: [String: [Decision]] = [:]
    }

    private let path: String
    private let state = Mutex(State())

    init(_ path: String) { self.path = path }

    func next(of authority: String) throws -> Decision {
      try Wait.until("the decision line of \(authority)") {
        try state.withLock { state in
          try read(&state)
          guard let first = state.waiting[authority]?.first else { return nil }
          state.waiting[authority]?.removeFirst()
          return first
        }
      }
    }

    private func read(_ state: inout State) throws {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      try file.seek(toOffset: state.offset)
      let data = try file.readToEnd() ?? Data()
      state.offset += UInt64(data.count)
      var lines = (state.rest + String(decoding: data, as: UTF8.self)).split(
        separator: "\n", omittingEmptySubsequences: false)
      state.rest = lines.popLast().map(String.init) ?? ""
      for line in lines {
        guard let object = (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any],
          let host = object["host"] as? String, let reason = object["reason"] as? String,
          let method = object["method"] as? String
        else { continue }
        state.waiting[host, default: []].append(Decision(reason: reason, method: method, text: String(line)))
      }
    }
  }
}
