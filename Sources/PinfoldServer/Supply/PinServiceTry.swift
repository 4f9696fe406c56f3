import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization

/// How the last try at one URL of a pin service ended.
struct PinServiceTry: Sendable {
  let at: Timestamp
  /// What went wrong; `nil` when a record was believed.
  let fault: PinFetchFault?
  let result: PinFetchResult

  init(_ attempt: PinFetcher.Attempt, at time: Timestamp) {
    at = time
    result = PinFetchResult(attempt)
    fault = if case .fault(let fault) = attempt { fault } else { nil }
  }
}

extension PinFetchResult {
  /// The metric's label for what came of one URL.
  init(_ attempt: PinFetcher.Attempt) {
    switch attempt {
    // A record came and was verified; that it cannot be compared is not the service's doing.
    case .success, .fault(.cache): self = .success
    case .fault(.fetch(let error)):
      switch error {
      case .timedOut: self = .timeout
      case .status: self = .status
      case .tooLarge: self = .oversized
      case .malformed: self = .malformed
      case .resolve, .connect, .tls, .truncated, .cancelled: self = .unreachable
      }
    case .fault(.record(let error)):
      switch error {
      case .signature, .algorithm, .unboundNotAllowed: self = .untrusted
      case .expired, .notYetValid: self = .expired
      case .tooLarge: self = .oversized
      case .malformed, .duplicateMember, .otherHost, .badDomain, .pins: self = .malformed
      }
    case .fault(.rollback): self = .expired
    case .fault(.busy), .fault(.crowded): self = .timeout
    }
  }
}

extension PinSupply {
  /// The services for `/status`, in the order of the configuration.
  func standing(_ services: PinServices) -> [Status.Service] {
    let tries = state.withLock { $0.tries }
    return services.all.map { service in
      Status.Service(
        urls: service.urls.map { url in
          let last = tries[url.origin]
          return Status.URL(
            url: url.origin, lastResult: last?.result.rawValue, lastAt: last?.at.text,
            lastError: last?.fault.map { "\($0.step): \($0.text)" })
        },
        domains: service.section.domains.map(\.text))
    }
  }

  /// Records at hand.
  var recordCount: Int { state.withLock { $0.keeper.count } }
}
