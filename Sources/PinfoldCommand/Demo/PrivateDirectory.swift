import FoundationEssentials
import Glibc

/// A directory for one run: made with mode 0700 under `TMPDIR` (or /tmp), and removed with everything in it when this
/// goes away.
final class PrivateDirectory {
  let path: String

  init() throws(FileFailure) {
    let parent = Environment["TMPDIR"] ?? "/tmp"
    // mkdtemp(3) puts letters of its own in place of the last six.
    var template = Array("\(parent)/pinfold-demo-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw FileFailure("make a directory in", parent, code: errno) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    // Left behind at worst: a test authority that trusts nothing but itself.
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The path of a file in it.
  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file that everybody may read who may enter the directory.
  func write(_ name: String, _ text: String) throws(FileFailure) {
    try FileAccess.create(file(name), Array(text.utf8), mode: 0o644)
  }
}
