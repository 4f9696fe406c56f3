/// Benchmarks that prove the claims of docs/performance.md. Each prints `key: value` lines.
Benchmarks.run(Array(CommandLine.arguments.dropFirst()))
