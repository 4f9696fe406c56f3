package import PinfoldModel

/// What a scrape needs and counters do not hold: handed in by the caller, since this layer has neither clock nor files.
package struct Scrape {
  /// The program's version.
  package var version: String
  /// The process's own figures; `nil` leaves those samples out.
  package var process: ProcessSample?
  /// Version and expiry of the policy in force; `nil` when there is none.
  package var policy: PolicySample?
  /// The state of one host that has a label, asked for each of them at every scrape, so that no gauge can be stale;
  /// `nil` for a host that the policy in force does not know any more.
  package var host: (String) -> HostSample?

  /// A scrape of what the caller knows.
  package init(
    version: String, process: ProcessSample? = nil, policy: PolicySample? = nil,
    host: @escaping (String) -> HostSample? = { _ in nil }
  ) {
    self.version = version
    self.process = process
    self.policy = policy
    self.host = host
  }
}

/// The policy in force, as gauges show it.
package struct PolicySample: Equatable, Sendable {
  /// Its version, and when it stops to count.
  package var version: UInt64
  package var expiry: Timestamp

  /// A policy in force.
  package init(version: UInt64, expiry: Timestamp) {
    self.version = version
    self.expiry = expiry
  }
}

/// One host, as gauges show it.
package struct HostSample: Equatable, Sendable {
  /// `nil` for a host that is blocked in every state, such as one whose pins have expired.
  package var state: EnforcementLabel?
  /// When its pins expire.
  package var pinsExpiry: Timestamp?
  /// Share of failures in the breaker's window, 0 to 1; `nil` while there are too few samples.
  package var failureRatio: Double?

  /// A host's gauges.
  package init(state: EnforcementLabel?, pinsExpiry: Timestamp? = nil, failureRatio: Double? = nil) {
    self.state = state
    self.pinsExpiry = pinsExpiry
    self.failureRatio = failureRatio
  }
}

/// The process's own figures.
package struct ProcessSample: Equatable, Sendable {
  /// User and system time in seconds.
  package var cpuSeconds: Double
  /// Memory in bytes, and numbers of file descriptors.
  package var residentBytes: UInt64
  package var virtualBytes: UInt64
  package var openDescriptors: UInt64
  package var maxDescriptors: UInt64
  /// Unix time in seconds.
  package var startSeconds: Double

  /// Figures as read by the caller.
  package init(
    cpuSeconds: Double, residentBytes: UInt64, virtualBytes: UInt64, openDescriptors: UInt64, maxDescriptors: UInt64,
    startSeconds: Double
  ) {
    self.cpuSeconds = cpuSeconds
    self.residentBytes = residentBytes
    self.virtualBytes = virtualBytes
    self.openDescriptors = openDescriptors
    self.maxDescriptors = maxDescriptors
    self.startSeconds = startSeconds
  }
}
