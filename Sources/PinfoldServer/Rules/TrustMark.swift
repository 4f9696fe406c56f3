import FoundationEssentials
import Glibc
import PinfoldCrypto
import PinfoldModel
import PinfoldTLS

/// What chains are verified by, in a form that can be compared: two marks are equal as long as no authority was added,
/// removed or exchanged in between.
struct TrustMark: Equatable, Sendable {
  private let digest: Digest256

  /// The mark of the authorities in this file, or of the system's.
  init(caFile: String?) {
    if let caFile {
      self.init(file: caFile, directories: [])
    } else {
      let places = TrustStore.systemPlaces(ProcessInfo.processInfo.environment)
      self.init(file: places.file, directories: places.directories)
    }
  }

  /// Of a file what it holds; of a directory, whose files OpenSSL reads when it needs them, their names, sizes and
  /// times. What cannot be read is marked as missing.
  init(file: String, directories: [String]) {
    var bytes = Array(file.utf8) + [0]
    bytes += FileManager.default.contents(atPath: file).map { SHA256.digest(Array($0)).bytes } ?? [0]
    for directory in directories {
      bytes += Array(directory.utf8) + [0]
      for name in (try? FileManager.default.contentsOfDirectory(atPath: directory))?.sorted() ?? [] {
        bytes += Array(name.utf8) + [0] + Array(Self.state(of: "\(directory)/\(name)").utf8) + [0]
      }
    }
    digest = SHA256.digest(bytes)
  }

  /// Size, change and place of what a name leads to; a link into an exchanged file leads elsewhere than before.
  private static func state(of path: String) -> String {
    var found = stat()
    guard unsafe stat(path, &found) == 0 else { return "" }
    return "\(found.st_dev) \(found.st_ino) \(found.st_size) \(found.st_ctim.tv_sec) \(found.st_ctim.tv_nsec)"
  }
}
