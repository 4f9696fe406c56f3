import Foundation

/// The checked-out project as the tests of this target see it: files read as text, never built.
enum Project {
  /// The top of the checkout, found from this file's own place.
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// One Swift file below `Sources` or `Tests`.
  struct File: Sendable {
    /// Path below the top, such as `Sources/PinfoldModel/Pin.swift`.
    let path: String
    /// Text split at line feeds, without them.
    let lines: [String]

    /// The second path component: the target the file belongs to.
    var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
  }

  /// Every Swift file below the folder, in path order.
  static func swiftFiles(below folder: String) throws -> [File] {
    let base = root.appending(path: folder)
    let paths = try FileManager.default.subpathsOfDirectory(atPath: base.path)
    return try paths.filter { $0.hasSuffix(".swift") }.sorted().map { path in
      let text = try String(contentsOf: base.appending(path: path), encoding: .utf8)
      return File(
        path: "\(folder)/\(path)", lines: text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      )
    }
  }

  /// The text of a file below the top; throws where there is none.
  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The names of the files in a folder, in order.
  static func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path).sorted()
  }
}
