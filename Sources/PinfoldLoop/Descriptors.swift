internal import CLinux

/// The process's open descriptors: a tunnel takes two, and four while bulk data flows both ways.
package enum Descriptors {
  /// Raises the limit of open descriptors to what the system allows at most (setrlimit(2), RLIMIT_NOFILE), and answers
  /// the limit then in force.
  @discardableResult
  package static func raiseLimit() -> Int {
    _ = pinfold_descriptor_limit(0, 1)
    return limit
  }

  /// The limit in force, or one given by tests, bounded by the hard limit.
  package static var limit: Int {
    get { max(pinfold_descriptor_limit(0, 0), 0) }
    set { _ = pinfold_descriptor_limit(UInt64(max(newValue, 1)), 1) }
  }

  /// Has something on each of the three standard descriptors. Where the process was started without one, the next file or
  /// socket would have its number, and be written to in its place. To be called before anything is opened.
  package static func fillStandard() { pinfold_fill_standard_descriptors() }

  /// How many are open now, as `/proc/self/fd` lists them; `nil` where that cannot be read.
  package static var openCount: Int? {
    let count = pinfold_descriptor_count()
    return count < 0 ? nil : count
  }
}
