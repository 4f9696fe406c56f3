extension Status {
  /// What the breaker sees.
  struct Breaker: Encodable {
    /// One crossing of a rule's threshold.
    struct Trip: Encodable {
      /// The rule's pattern, or the host where the pins are not the policy's.
      let rule: String
      /// The authority of the tunnel that crossed it.
      let host: String
      /// A pseudonym, also in the log; absent for all clients together.
      let client: String?
      let since: String
      /// The end of a suspension; absent for an alert.
      let until: String?
      /// What the window held when it was crossed.
      let ratio: Double
      let failures: Int
      let samples: Int
    }

    /// The policy's `monitoring`.
    let enabled: Bool
    let autoDisable: Bool
    /// Rules whose mismatches are over the threshold and go on being refused.
    let alerts: [Trip]
    /// Rules whose mismatches pass for a client until their end.
    let suspensions: [Trip]
  }
}

extension Status.Breaker {
  /// For the page: a line for each suspension and alert.
  var rows: [(String, String)] {
    func who(_ trip: Trip) -> String { trip.client.map { "client \($0)" } ?? "all clients" }
    func what(_ trip: Trip) -> String { "\(trip.failures) of \(trip.samples) failed, since \(trip.since)" }
    return suspensions.map { ("Suspended", "\($0.rule) for \(who($0)) until \($0.until ?? ""): \(what($0))") }
      + alerts.map { ("Alert", "\($0.rule) for \(who($0)): \(what($0))") }
  }
}
