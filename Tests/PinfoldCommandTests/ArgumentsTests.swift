import Testing

@testable import PinfoldCommand

@Suite struct ArgumentsTests {
  static let key = OptionSyntax(long: "--key", short: "-k", value: "FILE", repeats: true, help: "a key")
  static let output = OptionSyntax(long: "--output", short: "-o", value: "OUT", help: "where to")
  static let quick = OptionSyntax(long: "--quick", help: "at once")
  static let syntax = CommandSyntax(
    name: "seal", summary: "Seal", usage: ["-k FILE WHAT [WHERE]"], options: [key, output, quick],
    operands: [
      OperandSyntax(name: "WHAT", help: "the thing"), OperandSyntax(name: "WHERE", isRequired: false, help: "place"),
    ])

  struct Good: CustomTestStringConvertible {
    let testDescription: String
    let words: [String]
    var keys: [String] = []
    var output: String?
    var quick = false
    let operands: [String]
  }

  @Test(arguments: [
    Good(testDescription: "an operand alone", words: ["a"], operands: ["a"]),
    Good(testDescription: "options before operands", words: ["-o", "x", "a"], output: "x", operands: ["a"]),
    Good(testDescription: "options behind operands", words: ["a", "b", "-o", "x"], output: "x", operands: ["a", "b"]),
    Good(
      testDescription: "a value behind an equals sign", words: ["--output=x=y", "a"], output: "x=y", operands: ["a"]),
    Good(testDescription: "a value glued to its letter", words: ["-ox", "a"], output: "x", operands: ["a"]),
    Good(
      testDescription: "a repeating option keeps its order", words: ["-k", "1", "--key", "2", "a"], keys: ["1", "2"],
      operands: ["a"]),
    Good(testDescription: "a switch", words: ["--quick", "a"], quick: true, operands: ["a"]),
    Good(testDescription: "a lone dash is an operand", words: ["-"], operands: ["-"]),
    Good(testDescription: "two dashes end the options", words: ["--", "--quick", "-o"], operands: ["--quick", "-o"]),
    Good(testDescription: "a value may start with a dash", words: ["-o", "-x", "a"], output: "-x", operands: ["a"]),
  ])
  func reads(_ row: Good) throws {
    let arguments = try Arguments(row.words, syntax: Self.syntax)
    #expect(arguments.all(Self.key) == row.keys)
    #expect(arguments[Self.output] == row.output)
    #expect(arguments.has(Self.quick) == row.quick)
    #expect(arguments.operands == row.operands)
  }

  struct Bad: CustomTestStringConvertible {
    let testDescription: String
    let words: [String]
    let message: String
  }

  @Test(arguments: [
    Bad(testDescription: "no operand", words: [], message: "WHAT is missing"),
    Bad(testDescription: "too many operands", words: ["a", "b", "c"], message: #"unexpected argument "c""#),
    Bad(
      testDescription: "a near option", words: ["--ouput", "x", "a"],
      message: #"unknown option "--ouput": did you mean "--output"?"#),
    Bad(testDescription: "a far option", words: ["--teleport", "a"], message: #"unknown option "--teleport""#),
    Bad(
      testDescription: "a stranger's value is not shown", words: ["--pasword=s3cret", "a"],
      message: #"unknown option "--pasword""#),
    Bad(testDescription: "a missing value", words: ["a", "-o"], message: #"option "-o" needs a value: OUT"#),
    Bad(
      testDescription: "an empty value", words: ["--output=", "a"], message: #"option "--output" has an empty value"#),
    Bad(
      testDescription: "a switch with a value", words: ["--quick=1", "a"], message: #"option "--quick" takes no value"#),
    Bad(
      testDescription: "an option given twice", words: ["-o", "x", "--output", "y", "a"],
      message: #"option "--output" is given twice"#),
    Bad(
      testDescription: "control characters are shown, not sent", words: ["a", "b", "\u{1b}[2J\u{202e}"],
      message: #"unexpected argument "\u{1b}[2J\u{202e}""#),
  ])
  func refuses(_ row: Bad) {
    #expect(throws: CommandFailure(.usage, "seal: \(row.message) (see \"pinfold seal --help\")")) {
      try Arguments(row.words, syntax: Self.syntax)
    }
  }
}
