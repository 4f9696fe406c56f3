import PinfoldConfig
import PinfoldModel
import PinfoldPolicy

/// Promises: a document is taken or refused with reasons, each on a line the text has; what is taken is taken again, with
/// a line end behind it too; every rule that is taken has a pin.
enum PolicyTarget {
  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    let document: PolicyDocument
    do throws(FileErrors) {
      document = try PolicyDocument(reading: bytes[...], file: "policy.json5")
    } catch {
      try BrokenPromise.unless(!error.complaints.isEmpty, "refused without a reason")
      let lines = error.text.split(separator: "\n", omittingEmptySubsequences: false)
      try BrokenPromise.unless(lines.count == error.complaints.count, "a complaint of several lines")
      return
    }
    guard let again = try? PolicyDocument(reading: (bytes + [0x0a])[...], file: "policy.json5") else {
      throw BrokenPromise("refused with a line end behind it")
    }
    try BrokenPromise.unless(
      again.version == document.version && again.table.count == document.table.count, "read in two ways")
    for rule in document.table.rules {
      try BrokenPromise.unless(rule.pins.count > 0, "a rule without pins")
    }
    for name in ["api.example.com:443", "a.b.example.org:8443", "192.168.1.42:8443"] {
      guard let authority = Authority(name) else { throw BrokenPromise("\(name) is no authority") }
      let numbers = (document.table.rule(for: authority)?.number, again.table.rule(for: authority)?.number)
      try BrokenPromise.unless(numbers.0 == numbers.1, "\(name) has two rules")
    }
  }
}
