package import PinfoldLoop
package import PinfoldModel

/// Why one try for a host's pins brought none.
package enum PinFetchFault: Error, Hashable, Sendable {
  /// The service did not answer as it should.
  case fetch(HTTPFetchError)
  /// It answered with something that is not believed.
  case record(PinRecordError)
  /// A record older than one that was accepted before for the same host.
  case rollback(created: Timestamp, highest: Timestamp)
  /// The cache has something of the host, or may have, that the system does not give: why.
  case cache(String)
  /// Too many hosts are being asked for at the same time.
  case busy
  /// This client asks for too many hosts at the same time.
  case crowded

  /// The step that failed: a word for logs and tests.
  package var step: String {
    switch self {
    case .fetch(.status): "status"
    case .fetch(.tooLarge): "size"
    case .fetch(let error): error.step.rawValue
    case .record(let error): error.step
    case .rollback: "rollback"
    case .cache: "cache"
    case .busy, .crowded: "busy"
    }
  }

  /// One line for people; nothing in it is the service's own words but for short quotations.
  package var text: String {
    switch self {
    case .fetch(let error): error.text
    case .record(let error): error.description
    case .rollback(let created, let highest):
      "made at \(created.text), but one of \(highest.text) was accepted before; an older one never comes back"
    case .cache(let problem): "\(problem); a newer record may have been accepted before"
    case .busy: "too many hosts are being asked for"
    case .crowded: "too many hosts are being asked for by this client"
    }
  }
}

/// Why no URL of a service brought pins: what happened at each of them, in the order of trying.
package struct PinFetchFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// One URL's answer.
  package struct Attempt: Hashable, Sendable {
    /// The URL without user, path or query.
    package var origin: String
    /// What went wrong there.
    package var fault: PinFetchFault
  }

  /// At least one.
  package var attempts: [Attempt]

  /// What happened at each URL.
  package init(_ attempts: [Attempt]) { self.attempts = attempts }

  /// A failure before any URL was asked.
  package init(_ fault: PinFetchFault, at origin: String) { attempts = [Attempt(origin: origin, fault: fault)] }

  /// The step at which the last URL failed.
  package var step: String { attempts.last?.fault.step ?? "none" }

  /// `https://a.example: connect: …; https://b.example: signature: …`
  package var description: String {
    attempts.map { "\($0.origin): \($0.fault.step): \($0.fault.text)" }.joined(separator: "; ")
  }
}
