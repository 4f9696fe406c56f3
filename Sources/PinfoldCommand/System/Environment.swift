import Glibc

/// The process's environment variables. An empty one counts as not set.
enum Environment {
  /// getenv(3).
  static subscript(name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }
}
