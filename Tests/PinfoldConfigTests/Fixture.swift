import FoundationEssentials
import Testing

/// Files of the project that tests read.
enum Fixture {
  private static let folder = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast()

  static func bytes(_ path: String) throws -> [UInt8] {
    let full = (folder + ["Fixtures", path[...]]).joined(separator: "/")
    return try Array(Data(contentsOf: URL(filePath: full)))
  }

  /// A file counted from the top of the project.
  static func project(_ path: String) throws -> [UInt8] {
    let full = (folder.dropLast(2) + [path[...]]).joined(separator: "/")
    return try Array(Data(contentsOf: URL(filePath: full)))
  }

  /// Names of the files of a folder of fixtures.
  static func names(_ path: String) throws -> [String] {
    let full = (folder + ["Fixtures", path[...]]).joined(separator: "/")
    return try FileManager.default.contentsOfDirectory(atPath: full).sorted()
  }
}

/// One file with one mistake, and all that Pinfold says about it.
struct BadFile: CustomTestStringConvertible {
  var file: String
  var message: String

  init(_ file: String, _ message: String) {
    self.file = file
    self.message = message
  }

  var testDescription: String { file }
}
