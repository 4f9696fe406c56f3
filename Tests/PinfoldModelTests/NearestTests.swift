import PinfoldModel
import Testing

@Suite struct NearestTests {
  struct Row: CustomTestStringConvertible {
    let testDescription: String
    let word: String
    let answer: String?
  }

  static let words = ["run", "check", "explain", "sign", "verify", "version", "min_app_version"]

  @Test(arguments: [
    Row(testDescription: "two letters swapped are one edit", word: "chekc", answer: "check"),
    Row(testDescription: "a missing letter is one edit", word: "verfy", answer: "verify"),
    Row(testDescription: "an extra letter is one edit", word: "explainn", answer: "explain"),
    Row(testDescription: "case does not count", word: "CHECK", answer: "check"),
    Row(testDescription: "the nearer of two wins", word: "verifi", answer: "verify"),
    Row(testDescription: "a short word may differ in one place only", word: "rin", answer: "run"),
    Row(testDescription: "a short word with two differences is no slip", word: "rix", answer: nil),
    Row(testDescription: "a long word may differ in three places", word: "minn_ap_versoin", answer: "min_app_version"),
    Row(testDescription: "a stranger has no neighbour", word: "teleport", answer: nil),
    Row(testDescription: "an empty word has no neighbour", word: "", answer: nil),
    Row(testDescription: "an endless word is not compared", word: String(repeating: "a", count: 65), answer: nil),
  ])
  func match(_ row: Row) {
    #expect(Nearest.match(row.word, among: Self.words) == row.answer)
  }

  @Test func `of equally near words the first is named`() {
    #expect(Nearest.match("pin", among: ["pan", "pen"]) == "pan")
  }
}
