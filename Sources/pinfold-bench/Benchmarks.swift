import Glibc

/// The benchmarks by name.
enum Benchmarks {
  static func run(_ arguments: [String]) {
    switch arguments.first {
    case "policy":
      let rules = arguments.count > 1 ? Int(arguments[1]) ?? 0 : 1_000_000
      guard (1...10_000_000).contains(rules) else { return usage() }
      PolicyBenchmark(rules: rules).run()
    default: usage()
    }
  }

  private static func usage() {
    print("usage: pinfold-bench policy [RULES]")
    exit(64)
  }
}
