import Testing

/// Rules of the house that the compiler does not know.
@Suite struct SourceRuleTests {
  /// A reader keeps 400 lines in mind; past that a file has two subjects.
  private static let lineLimit = 400
  /// Past 40 lines a function needs a reason, past 60 none is good enough.
  private static let functionLimit = 60

  @Test("No file is longer than 400 lines", arguments: ["Sources", "Tests"]) func filesAreShort(folder: String) throws {
    for file in try Project.swiftFiles(below: folder) {
      #expect(file.lines.count <= Self.lineLimit + 1, "\(file.path) has \(file.lines.count - 1) lines")
    }
  }

  @Test("No function is longer than 60 lines") func functionsAreShort() throws {
    for file in try Project.swiftFiles(below: "Sources") {
      for (index, line) in file.lines.enumerated() where Self.beginsFunction(line) {
        let margin = String(line.prefix { $0 == " " })
        let end = file.lines[index...].firstIndex { $0 == "\(margin)}" } ?? index
        #expect(end - index <= Self.functionLimit, "\(file.path):\(index + 1) takes \(end - index) lines")
      }
    }
  }

  private static func beginsFunction(_ line: String) -> Bool {
    let code = SwiftLine.code(line)
    guard code.hasSuffix("{") || code.hasSuffix("(") else { return false }
    return code.contains("func ") || code.drop { $0 == " " }.hasPrefix("init(") || code.contains(" init(")
  }

  @Test(
    "What can trap, or switches a check off, says beside it why it cannot do harm",
    arguments: [
      "try!", "fatalError(", "preconditionFailure(", " as! ", "@unchecked Sendable", "nonisolated(unsafe)",
      "unsafeBitCast(",
    ])
  func trapsHaveReasons(word: String) throws {
    for file in try Project.swiftFiles(below: "Sources") {
      for (index, line) in file.lines.enumerated() where SwiftLine.code(line).contains(word) {
        // What is Sendable by a promise gives its proof once, in the comment of the type.
        let isProven = word == "nonisolated(unsafe)" && file.lines[..<index].contains { $0.contains("// Sendable: ") }
        let hasReason = isProven || SwiftLine.hasComment(index, in: file.lines)
        #expect(hasReason, "\(file.path):\(index + 1) uses \(word) without a reason")
      }
    }
  }

  @Test("Every package declaration has a doc comment") func packageDeclarationsAreDocumented() throws {
    for file in try Project.swiftFiles(below: "Sources") {
      for (index, line) in file.lines.enumerated() where SwiftLine.beginsPackageDeclaration(line) {
        let isDocumented = SwiftLine.isDocumented(index, in: file.lines)
        #expect(isDocumented, "\(file.path):\(index + 1) \(line)")
      }
    }
  }

  @Test("Nothing is public: the package has no users outside itself") func nothingIsPublic() throws {
    for file in try Project.swiftFiles(below: "Sources") {
      for (index, line) in file.lines.enumerated() {
        let isPublic = SwiftLine.beginsPublicDeclaration(line)
        #expect(!isPublic, "\(file.path):\(index + 1)")
      }
    }
  }

  @Test("No file is named after nothing in particular") func namesMeanSomething() throws {
    for file in try Project.swiftFiles(below: "Sources") {
      let name = file.path.split(separator: "/").last ?? ""
      #expect(!["Utils", "Helpers", "Common", "Misc"].contains { name.hasPrefix($0) }, "\(file.path)")
    }
  }

  @Test(
    "The scanner tells declarations from other lines",
    arguments: [
      ("  package func read() throws {", true), ("  package static let limit = 8", true),
      ("package final class Loop {", true),
      ("  package mutating func u24() throws(WireError) -> Int {", true), ("  package init?(_ text: String) {", true),
      ("@safe package struct Context: ~Copyable {", true), ("  package private(set) var count = 0", true),
      ("  package static func == (left: Self, right: Self) -> Bool {", false), ("package import PinfoldModel", false),
      ("  let package = 1", false), ("  // package func gone()", false), ("  private func own() {", false),
    ])
  func declarations(line: String, expected: Bool) {
    #expect(SwiftLine.beginsPackageDeclaration(line) == expected)
  }

  @Test("A word in a string or a comment is no code") func codeLeavesOutStringsAndComments() {
    #expect(!SwiftLine.code(#"let text = "try! hard" // fatalError( here"#).contains("try!"))
    #expect(!SwiftLine.code(#"let text = "try! hard" // fatalError( here"#).contains("fatalError("))
    #expect(SwiftLine.code("let value = try! read()").contains("try!"))
  }
}
