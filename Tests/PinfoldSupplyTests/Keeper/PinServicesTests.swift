import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// Which service speaks for which host, and what a configuration of services can get wrong.
@Suite struct PinServicesTests {
  private func services(_ text: String) throws -> PinServices {
    let configuration = try Configuration.parse(Array(text.utf8), file: "pinfold.json5", directory: "/etc")
    return try PinServices(configuration, file: "pinfold.json5")
  }

  private func element(_ url: String, _ domains: String, more: String = "") throws -> String {
    let key = try RecordMaker().key.publicKey.text
    return "{ urls: [\"\(url)\"], domains: [\(domains)], trusted_keys: [\"\(key)\"], \(more) }"
  }

  @Test("The narrowest domain decides which service is asked") func precedence() throws {
    let text = """
      { pin_services: [ \(try element("http://wide.example/p", "\"**.example.com\"")),
        \(try element("http://one.example:8080/p", "\"*.example.com\", \"example.org\"")),
        \(try element("http://exact.example/p", "\"api.example.com\"")) ] }
      """
    let services = try services(text)
    for (host, label) in [
      ("api.example.com", "http://exact.example"), ("www.example.com", "http://one.example:8080"),
      ("example.com", "http://wide.example"), ("a.b.example.com", "http://wide.example"),
      ("example.org", "http://one.example:8080"), ("www.example.org", nil),
    ] as [(String, String?)] {
      #expect(services.service(for: try KeeperFixture.host(host))?.label == label, "\(host)")
    }
    #expect(PinServices.none.service(for: try KeeperFixture.host()) == nil)
  }

  @Test("A label shows neither user, path nor query") func label() throws {
    let services = try services(
      "{ pin_services: [ \(try element("http://pins.example/secret?token=1", "\"a.example.com\"")) ] }")
    #expect(services.all.map(\.label) == ["http://pins.example"])
  }

  @Test(
    "Keys and authorities that cannot be used are mistakes of the configuration",
    arguments: [
      ("trusted_keys: [\"AAAA\"]", "trusted_keys"), ("ca_file: \"/nowhere/ca.pem\"", "ca_file"),
    ])
  func mistakes(member: String, named: String) throws {
    var text = try element("https://pins.example/p", "\"a.example.com\"", more: member.hasPrefix("ca") ? member : "")
    if member.hasPrefix("trusted") {
      text = "{ urls: [\"https://pins.example/p\"], domains: [\"a.example.com\"], \(member) }"
    }
    do {
      _ = try services("{ pin_services: [ \(text) ] }")
      Issue.record("taken")
    } catch let errors as FileErrors {
      #expect(errors.text.contains("pin_services[0].\(named)"), "\(errors.text)")
      #expect(errors.complaints.allSatisfy { $0.place != nil }, "\(errors.text)")
    }
  }
}
