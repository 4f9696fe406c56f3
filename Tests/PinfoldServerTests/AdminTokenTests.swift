import FoundationEssentials
import PinfoldCrypto
import PinfoldModel
import Testing

@testable import PinfoldServer

@Suite struct AdminTokenTests {
  private struct Place: ~Copyable {
    let path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path
    deinit { try? FileManager.default.removeItem(atPath: path) }

    func token() throws -> (token: AdminToken, text: String) {
      let token = try AdminToken(stateDirectory: path)
      let bytes = try PrivateFile.read("\(path)/admin.token", limit: 100)
      #expect(bytes.mode == 0o600)
      return (token, String(decoding: bytes.bytes.dropLast(), as: UTF8.self))
    }
  }

  @Test func `the token of the file is admitted, and the one of the start before is not`() throws {
    let place = Place()
    let (first, text) = try place.token()
    #expect(Hex.decode(text)?.count == 32)
    #expect(first.admits("Bearer \(text)"))
    #expect(first.admits("bearer \(text)"))
    let (second, next) = try place.token()
    #expect(next != text)
    #expect(!second.admits("Bearer \(text)"))
    #expect(second.admits("Bearer \(next)"))
  }

  @Test func `everything else is not`() throws {
    let place = Place()
    let (token, text) = try place.token()
    for field in [
      nil, "", "Bearer", "Bearer ", text, "Basic \(text)", "Bearer  \(text)", "Bearer \(text) ", "Bearer \(text)0",
      "Bearer \(text.dropLast())", "Bearer \(text.uppercased())", "Bearer \(String(text.reversed()))",
      "Bearer \(String(repeating: "0", count: 64))", "\u{130}earer \(text)",
    ] {
      #expect(!token.admits(field), "\(field ?? "none")")
    }
  }

  @Test func `where it cannot be written there is none`() throws {
    #expect(throws: CryptoError.self) { try AdminToken(stateDirectory: "/proc/none/none") }
  }

  @Test(
    "A query is decoded by its percent signs alone",
    arguments: [
      ("api.example.com", "api.example.com"), ("%5B::1%5D:443", "[::1]:443"), ("a%2eb", "a.b"), ("a+b", "a+b"),
      ("%", nil), ("%4", nil), ("%zz", nil), ("", ""), ("%25", "%"),
    ] as [(String, String?)])
  func decoded(text: String, expected: String?) { #expect(AdminSite.decoded(text) == expected) }
}
