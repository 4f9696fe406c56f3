/// Writes the Prometheus text format 0.0.4.
struct Exposition {
  private(set) var bytes: [UInt8] = []

  /// Opens a family: its HELP and TYPE lines. All of its samples follow before the next one.
  mutating func open(_ family: MetricFamily) {
    write("# HELP \(family.rawValue) \(family.help)\n# TYPE \(family.rawValue) \(family.kind.rawValue)\n")
  }

  /// One sample of `family`, its name followed by `suffix`.
  mutating func sample(
    _ family: MetricFamily, suffix: String = "", _ labels: [(name: String, value: String)], _ value: String
  ) {
    write(family.rawValue)
    write(suffix)
    if !labels.isEmpty {
      write("{")
      for (index, label) in labels.enumerated() {
        write(index == 0 ? "\(label.name)=\"" : ",\(label.name)=\"")
        writeEscaped(label.value)
        write("\"")
      }
      write("}")
    }
    write(" \(value)\n")
  }

  /// One sample with labels and a whole number.
  mutating func sample(_ family: MetricFamily, _ labels: [(name: String, value: String)], _ value: UInt64) {
    sample(family, labels, String(value))
  }

  /// One sample without labels.
  mutating func sample(_ family: MetricFamily, _ value: UInt64) { sample(family, [], String(value)) }

  /// A floating-point value as the format spells it.
  static func text(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return value.description
  }

  private mutating func write(_ text: String) { bytes.append(contentsOf: text.utf8) }

  /// Backslash, quote and newline are the three that end or bend a label value.
  private mutating func writeEscaped(_ text: String) {
    for byte in text.utf8 {
      switch byte {
      case 0x5c: write("\\\\")
      case 0x22: write("\\\"")
      case 0x0a: write("\\n")
      default: bytes.append(byte)
      }
    }
  }
}
