import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry

/// The pages of the admin port: metrics, health, readiness, status. It answers from memory at once. One path changes
/// something, asks for a token, and answers when the disk has it.
final class AdminSite: Sendable {
  let services: Services
  private let history: ReloadHistory
  private let workers: Int
  private let listen: [String]
  private let started: LogTime
  /// `nil` where it could not be kept: then nothing can be changed by request.
  let token: AdminToken?

  init(
    services: Services, history: ReloadHistory, workers: Int, listen: [String], started: LogTime, token: AdminToken?
  ) {
    self.token = token
    self.services = services
    self.history = history
    self.workers = workers
    self.listen = listen
    self.started = started
  }

  /// Answers one request.
  func answer(_ request: HTTPRequest, _ responder: HTTPResponder) {
    if request.path == Self.rearmPath { rearm(request, responder) } else { responder.send(page(request)) }
  }

  private func page(_ request: HTTPRequest) -> HTTPResponse {
    switch request.path {
    case "/metrics":
      return HTTPResponse(
        status: 200, contentType: "text/plain; version=0.0.4; charset=utf-8", body: services.metrics.render(scrape()))
    case "/healthz": return HTTPResponse(text: "ok\n")
    case "/readyz":
      let readiness = readiness(services.rules.current.now)
      if readiness == .ready { return HTTPResponse(text: "ready\n") }
      return HTTPResponse(status: 503, text: "\(readiness.detail ?? "not ready")\n")
    case "/status":
      return HTTPResponse(status: 200, contentType: "application/json", body: status().json)
    case "/":
      return HTTPResponse(status: 200, contentType: "text/html; charset=utf-8", body: StatusPage(status()).html)
    default: return HTTPResponse(status: 404, text: "not found; try /metrics /healthz /readyz /status\n")
    }
  }

  private func readiness(_ now: Timestamp) -> Readiness {
    Readiness(services.rules.current.policy, at: now, isDraining: services.isDraining)
  }

  private func scrape() -> Scrape {
    let rules = services.rules.current
    return Scrape(
      version: Release.version, process: ProcessFigures.sample(startSeconds: Double(started.milliseconds) / 1000),
      policy: rules.policy.document.map { PolicySample(version: $0.version, expiry: $0.expiresAt) },
      host: { [services] host in services.sample(of: host, rules) })
  }

  func status() -> Status {
    let rules = services.rules.current
    // As tunnels are judged, whatever the clock shows.
    let now = rules.now
    let readiness = readiness(now)
    return Status(
      version: Release.version, state: readiness.word, detail: readiness.detail,
      startedAt: Timestamp(seconds: started.milliseconds / 1000).text, now: Timestamp.now.text, listen: listen,
      workers: workers, unpinned: rules.configuration.policy.unpinned.rawValue, policy: .init(rules.policy, at: now),
      tunnels: .init(active: services.tunnels.tunnels.now, limit: rules.tunnelLimit),
      lastReload: history.last.map {
        .init(at: $0.at.text, result: $0.error == nil ? "success" : "failure", error: $0.error)
      }, pinServices: services.supply.standing(rules.pinServices), pinRecords: services.supply.recordCount,
      audit: services.audit.figures, breaker: services.breaker.figures(rules.policy))
  }
}
