import Foundation
import PinfoldConfig
import PinfoldPolicy
import Testing

@testable import PinfoldCommand

/// Which domains a pin server answers for: the rows of the family's own server.
@Suite struct DomainTests {
  struct Row: Decodable, CustomTestStringConvertible {
    let allowed: [String]
    let query: String
    let allowsAddresses: Bool
    let expect: Bool

    var testDescription: String { "\(query.debugDescription) of \(allowed)" }
  }

  private struct File: Decodable { let allowList: [Row] }

  static let rows: [Row] = {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Fixtures/PinServices/server.json")
    return (try? JSONDecoder().decode(File.self, from: Data(contentsOf: file)).allowList) ?? []
  }()

  @Test func `the rows are there`() { #expect(Self.rows.count == 38) }

  /// What is no pattern for us is a mistake at start; for the family's server it matches nothing.
  @Test(arguments: rows) func `the list allows what the family's server allows`(_ row: Row) {
    let patterns = row.allowed.compactMap { try? DomainNames.pattern($0.filter { $0 != " " }) }
    let list = DomainAllowList(patterns: patterns, allowsAddresses: row.allowsAddresses)
    #expect(list.allows(row.query) == row.expect)
  }

  @Test func `two asterisks reach any depth and the name itself`() throws {
    let list = DomainAllowList(patterns: [try DomainNames.pattern("**.example.com")], allowsAddresses: false)
    for name in ["example.com", "a.example.com", "a.b.Example.com"] { #expect(list.allows(name)) }
    for name in ["notexample.com", "example.org", "com", "example.com.", ""] { #expect(!list.allows(name)) }
  }

  @Test(
    arguments: [
      (nil, nil), ("", nil), ("domain=", ""), ("domain", ""), ("domain=a.test", "a.test"), ("x=1&domain=a", "a"),
      ("domain=a&domain=b", "a"), ("domain=%61.test", "a.test"), ("domain=%20a+b", " a b"), ("domain=a=b", "a=b"),
      ("domain=%4", nil), ("domain=%zz&domain=b", "b"), ("domain=%ff", nil), ("%64omain=a", "a"), ("DOMAIN=a", nil),
      ("&&domain=a", "a"), ("domain=a%26domain=b", "a&domain=b"),
    ] as [(String?, String?)])
  func `the query is read as forms write it`(_ query: String?, _ domain: String?) {
    #expect(QueryString(query)["domain"] == domain)
  }
}
