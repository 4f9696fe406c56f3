/// A reader did what it must never do. Trapping is the other way to fail, and the sanitizers' is the third.
struct BrokenPromise: Error, CustomStringConvertible {
  /// What does not hold.
  let description: String

  init(_ description: String) {
    self.description = description
  }

  /// Throws unless `condition` holds.
  static func unless(_ condition: Bool, _ text: @autoclosure () -> String) throws(BrokenPromise) {
    guard condition else { throw BrokenPromise(text()) }
  }
}
