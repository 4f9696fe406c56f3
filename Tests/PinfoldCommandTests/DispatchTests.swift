import Glibc
import PinfoldModel
import Testing

@testable import PinfoldCommand

@Suite struct DispatchTests {
  struct Row: CustomTestStringConvertible {
    let testDescription: String
    let words: [String]
    let message: String
  }

  @Test(arguments: [
    Row(testDescription: "no command", words: [], message: "a command is missing"),
    Row(
      testDescription: "a near command", words: ["versoin"],
      message: #"unknown command "versoin": did you mean "version"?"#),
    Row(testDescription: "a far command", words: ["teleport"], message: #"unknown command "teleport""#),
    Row(
      testDescription: "a near option", words: ["--verson"],
      message: #"unknown option "--verson": did you mean "--version"?"#),
    Row(
      testDescription: "help about nothing known", words: ["help", "teleport"], message: #"unknown command "teleport""#),
  ])
  func `a mistyped command line is usage`(_ row: Row) {
    let tool = Tool(row.words)
    #expect(tool.status == .usage)
    #expect(tool.output == [])
    #expect(tool.errors == ["pinfold: \(row.message) (see \"pinfold --help\")"])
  }

  @Test(arguments: [["version"], ["--version"]])
  func `the version is one line`(words: [String]) {
    let tool = Tool(words)
    #expect(tool.status == .good)
    #expect(tool.output == ["pinfold \(Release.version)"])
    #expect(tool.errors == [])
  }

  @Test func `exit codes are those of sysexits`() {
    #expect([ExitCode.good, .failed, .usage, .config].map(\.rawValue) == [0, 1, 64, 78])
  }
}

/// What `--help` says, word for word. After a wanted change: `pinfold COMMAND --help > Help/COMMAND.txt`.
@Suite struct HelpTests {
  private static func golden(_ name: String) throws -> [String] {
    let here = #filePath.split(separator: "/").dropLast().joined(separator: "/")
    let bytes = try FileAccess.read("/\(here)/Help/\(name).txt", limit: 1 << 16)
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      .map(String.init)
  }

  @Test(arguments: CommandLineTool.commands.map { $0.syntax.name })
  func `help of a command is its golden text in every spelling`(name: String) throws {
    let golden = try Self.golden(name)
    for words in [[name, "--help"], [name, "-h"], ["help", name], [name, "--no-such-option", "--help"]] {
      let tool = Tool(words)
      #expect(tool.status == .good)
      #expect(tool.output == golden)
      #expect(tool.errors == [])
    }
  }

  @Test(arguments: ["--help", "-h", "help"])
  func `the overview is its golden text`(word: String) throws {
    let tool = Tool(word)
    #expect(tool.status == .good)
    #expect(try tool.output == Self.golden("pinfold"))
  }

  @Test func `help fits a terminal of 100 columns and every command is in the overview`() throws {
    let overview = try Self.golden("pinfold")
    for command in CommandLineTool.commands {
      let syntax = command.syntax
      #expect(overview.contains { $0.hasPrefix("  \(syntax.name) ") && $0.hasSuffix(syntax.summary) })
      for line in Help.text(for: syntax).split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
    }
  }

  @Test func `help behind two dashes is an operand`() {
    let tool = Tool("version", "--", "--help")
    #expect(tool.status == .usage)
  }
}
