import Glibc

/// One try of the demonstration: curl through the proxy, and what the proxy counted meanwhile.
struct DemoCheck {
  let site: DemoSite
  /// What happened, in lines.
  let lines: [String]
  /// Whether it is what should happen.
  let isGood: Bool

  /// Seconds until a tunnel that ended must have been counted.
  private static let patience = 5

  /// Fetches the site's page with `curl` and reads the verdict off the metrics of `admin`.
  init(_ site: DemoSite, curl: String, _ text: DemoText, admin: AdminClient) throws(CommandFailure) {
    self.site = site
    let reason = site.isPinnedRightly ? "pin_match" : "pin_mismatch"
    let result = site.isPinnedRightly ? "allowed" : "refused"
    let series = "pinfold_tunnels_total{result=\"\(result)\",reason=\"\(reason)\"}"
    let (child, isCounted) = try Self.fetch(site, curl, text, admin, counting: series)
    let shown = (child.output + child.errors).split(separator: "\n").map { "  \(escaped($0))" }
    if site.isPinnedRightly {
      let isRight = child.status == 0 && child.output == site.greeting && isCounted
      isGood = isRight
      lines = shown + [isRight ? "  passed: \(reason)" : "  WRONG: this should have passed as \(reason)"]
    } else {
      let isRight = child.status != 0 && child.output.isEmpty && isCounted
      isGood = isRight
      lines = shown + [isRight ? "  refused: \(reason)" : "  WRONG: this should have been refused as \(reason)"]
    }
  }

  private static func fetch(
    _ site: DemoSite, _ curl: String, _ text: DemoText, _ admin: AdminClient, counting series: String
  ) throws(CommandFailure) -> (child: ChildProcess, isCounted: Bool) {
    let before = try CommandFailure.failing("the admin port") { () throws(NetworkFailure) in
      try value(of: series, admin)
    }
    let child = try CommandFailure.failing { () throws(FileFailure) in
      try ChildProcess(curl, text.curlArguments(site))
    }
    // A tunnel is counted when it ends, a moment after curl does.
    let end = ContinuousClock.now + .seconds(patience)
    while ContinuousClock.now < end {
      guard let now = try? value(of: series, admin) else { break }
      if now == before + 1 { return (child, true) }
      usleep(20_000)
    }
    return (child, false)
  }

  /// The value of a counter; 0 while it has no sample.
  static func value(of series: String, _ admin: AdminClient) throws(NetworkFailure) -> Int {
    value(of: series, in: try admin.get("/metrics").body)
  }

  static func value(of series: String, in exposition: String) -> Int {
    for line in exposition.split(separator: "\n") where line.hasPrefix(series + " ") {
      return Int(line.dropFirst(series.count + 1)) ?? 0
    }
    return 0
  }
}
