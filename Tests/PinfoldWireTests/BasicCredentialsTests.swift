import Foundation
import PinfoldModel
import Testing

@testable import PinfoldWire

@Suite struct BasicCredentialsTests {
  private static func field(_ credentials: String, scheme: String = "Basic ") -> [UInt8] {
    Array((scheme + Data(credentials.utf8).base64EncodedString()).utf8)
  }

  struct Row: CustomTestStringConvertible {
    let testDescription: String
    let field: [UInt8]
    let user: String
    let password: String

    init(_ description: String, _ field: [UInt8], _ user: String, _ password: String) {
      (testDescription, self.field, self.user, self.password) = (description, field, user, password)
    }
  }

  private static let good = [
    Row("the example of RFC 7617", Array("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".utf8), "Aladdin", "open sesame"),
    Row("the example with UTF-8", Array("Basic dGVzdDoxMjPCow==".utf8), "test", "123£"),
    Row("a scheme in capitals and more blanks", field("u:p", scheme: "BASIC   "), "u", "p"),
    Row("colons in the password", field("u:a:b:"), "u", "a:b:"),
    Row("an empty password", field("u:"), "u", ""),
    Row(
      "a user of 255 bytes", field(String(repeating: "u", count: 255) + ":p"), String(repeating: "u", count: 255), "p"),
    Row("a user with blanks", field("a b:p"), "a b", "p"),
  ]

  @Test(arguments: good) func `user and password are read`(_ row: Row) throws {
    // The value is a part of a head, not an array of its own.
    let head = [0x58, 0x3a] + row.field
    let credentials = try #require(BasicCredentials(head[2...]))
    #expect(credentials.user == row.user)
    #expect(Array(credentials.password) == Array(row.password.utf8))
  }

  private static let bad: [(String, [UInt8])] = [
    ("nothing", []), ("the scheme alone", Array("Basic".utf8)), ("no value", Array("Basic ".utf8)),
    ("another scheme", field("u:p", scheme: "Bearer ")), ("no blank", field("u:p", scheme: "Basic")),
    ("a tab", field("u:p", scheme: "Basic\t")), ("no colon", field("user")), ("no user", field(":p")),
    ("a newline in the password", field("u:p\n")), ("an escape in the user", field("u\u{1b}:p")),
    ("a C1 control", field("u:\u{85}")), ("DEL", field("u:\u{7f}")), ("a comment's user", field("#u:p")),
    ("a user of 256 bytes", field(String(repeating: "u", count: 256) + ":p")),
    ("no UTF-8", Array("Basic /zpw".utf8)), ("a surrogate", Array("Basic dTrtoIA=".utf8)),
    ("padding left out", Array("Basic dGVzdDoxMjPCow".utf8)), ("bits behind the end", Array("Basic dTpwcR==".utf8)),
    ("base64 for URLs", Array("Basic dTo_Pw==".utf8)), ("a parameter behind it", Array("Basic dTpw, x=y".utf8)),
    ("a blank behind it", Array("Basic dTpw ".utf8)), ("a blank inside", Array("Basic dT pw".utf8)),
  ]

  @Test(arguments: bad) func `everything else is none`(description: String, field: [UInt8]) {
    #expect(BasicCredentials(field[...]) == nil, "\(description)")
  }

  @Test func `no prefix of a field is read as something else than the field`() throws {
    let field = Self.field("user:password")
    for end in 0..<field.count {
      guard let credentials = BasicCredentials(field[..<end]) else { continue }
      #expect(credentials.user == "user")
      #expect(Array("password".utf8).starts(with: credentials.password))
    }
  }

  @Test func `what is erased is gone from where it lay`() throws {
    let credentials = try #require(BasicCredentials(Self.field("u:secret")[...]))
    credentials.erase { bytes in for index in bytes.indices { bytes[index] = 0 } }
    #expect(credentials.bytes.allSatisfy { $0 == 0 })
    #expect(credentials.user == "u")
  }

  @Test(
    arguments: [
      ("alice", true), ("a@b.example", true), ("ü", true), ("a#b", true), ("", false), ("a:b", false), ("#a", false),
      ("a\nb", false), ("a\0", false), ("a\u{9b}b", false), (String(repeating: "ü", count: 127), true),
      (String(repeating: "ü", count: 128), false),
    ])
  func `a user's name`(name: String, isOne: Bool) {
    #expect(BasicCredentials.isUserName(Array(name.utf8)) == isOne)
  }
}
