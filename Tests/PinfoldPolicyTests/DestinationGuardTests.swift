import PinfoldModel
import PinfoldPolicy
import Testing

@Suite struct DestinationGuardTests {
  private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text), "\(text)") }
  private func listener(_ text: String) throws -> SocketAddress { try #require(SocketAddress(text)) }
  private func block(_ text: String) throws -> AddressBlock { try #require(AddressBlock(text)) }

  /// Both ends of each block and their neighbours outside.
  @Test(
    "Every address has its class",
    arguments: [
      ("0.0.0.0", AddressClass.unspecified), ("0.255.255.255", .unspecified), ("1.0.0.0", .global),
      ("9.255.255.255", .global), ("10.0.0.0", .privateUse), ("10.255.255.255", .privateUse), ("11.0.0.0", .global),
      ("100.63.255.255", .global), ("100.64.0.0", .carrier), ("100.127.255.255", .carrier), ("100.128.0.0", .global),
      ("100.100.100.200", .metadata), ("126.255.255.255", .global), ("127.0.0.1", .loopback),
      ("127.255.255.255", .loopback),
      ("128.0.0.0", .global), ("168.63.129.16", .metadata), ("169.253.255.255", .global), ("169.254.0.0", .linkLocal),
      ("169.254.169.254", .metadata), ("169.254.170.2", .metadata), ("169.254.255.255", .linkLocal),
      ("172.15.255.255", .global), ("172.16.0.0", .privateUse), ("172.31.255.255", .privateUse),
      ("172.32.0.0", .global),
      ("192.0.0.0", .reserved), ("192.0.0.192", .metadata), ("192.0.2.1", .reserved), ("192.88.99.1", .translated),
      ("192.167.255.255", .global), ("192.168.0.0", .privateUse), ("192.168.255.255", .privateUse),
      ("192.169.0.0", .global), ("198.17.255.255", .global), ("198.18.0.0", .reserved), ("198.19.255.255", .reserved),
      ("198.20.0.0", .global), ("198.51.100.1", .reserved), ("203.0.113.255", .reserved), ("203.0.114.0", .global),
      ("223.255.255.255", .global), ("224.0.0.1", .multicast), ("239.255.255.255", .multicast),
      ("240.0.0.0", .reserved),
      ("255.255.255.254", .reserved), ("255.255.255.255", .broadcast), ("8.8.8.8", .global),
    ])
  func classOfIPv4(_ text: String, _ kind: AddressClass) throws {
    #expect(AddressClass(try address(text)) == kind)
    #expect(AddressClass(try address("::ffff:" + text)) == kind, "mapped into IPv6")
  }

  @Test(
    "Every IPv6 address has its class",
    arguments: [
      ("::", AddressClass.unspecified), ("::1", .loopback), ("::2", .translated), ("::127.0.0.1", .translated),
      ("::1:0:0", .reserved), ("::ffff:0:127.0.0.1", .reserved), ("64:ff9b::8.8.8.8", .translated),
      ("64:ff9b::127.0.0.1", .translated), ("64:ff9b:1::1", .translated), ("64:ff9b:1:ffff::10.0.0.1", .translated),
      ("64:ff9b:2::1", .reserved), ("100::1", .reserved), ("2000::1", .global), ("2001::1", .translated),
      ("2001:0:ffff::1", .translated), ("2001:1::1", .reserved), ("2001:2::1", .reserved), ("2001:1ff::1", .reserved),
      ("2001:200::1", .global), ("2001:db8::1", .reserved), ("2001:db9::1", .global), ("2001:4860:4860::8888", .global),
      ("2002:7f00:1::", .translated), ("2002:808:808::1", .translated), ("2003::1", .global), ("3fff::1", .reserved),
      ("3fff:1000::1", .global), ("4000::1", .reserved), ("5f00::1", .reserved), ("fbff::1", .reserved),
      ("fc00::1", .privateUse), ("fd00:ec2::254", .metadata), ("fd20:ce::254", .metadata),
      ("fd00:ec2::255", .privateUse),
      ("fdff::1", .privateUse), ("fe00::1", .reserved), ("fe80::1", .linkLocal), ("febf::1", .linkLocal),
      ("fec0::1", .privateUse), ("ff02::1", .multicast),
    ])
  func classOfIPv6(_ text: String, _ kind: AddressClass) throws {
    #expect(AddressClass(try address(text)) == kind)
  }

  @Test func `unpinned hosts lead to public addresses only, pinned ones anywhere but to groups`() throws {
    let guarding = DestinationGuard()
    for text in [
      "10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1", "64:ff9b::8.8.8.8", "2002:808:808::1", "0.0.0.0",
      "::ffff:10.0.0.1", "100.64.0.1", "192.0.2.1", "fe80::1",
    ] {
      #expect(!guarding.verdict(try address(text), port: 443, pinned: false).isAllowed, "\(text)")
      #expect(guarding.verdict(try address(text), port: 443, pinned: true).isAllowed, "\(text)")
    }
    for text in ["224.0.0.1", "255.255.255.255", "ff02::1"] {
      #expect(!guarding.verdict(try address(text), port: 443, pinned: true).isAllowed, "\(text)")
    }
    #expect(guarding.verdict(try address("8.8.8.8"), port: 443, pinned: false).isAllowed)
  }

  @Test func `allow opens blocks, and deny closes them for every host`() throws {
    let guarding = DestinationGuard(
      allow: [try block("10.0.0.0/8")], deny: [try block("10.1.0.0/16"), try block("8.8.8.8")])
    #expect(guarding.verdict(try address("10.0.0.1"), port: 443, pinned: false).isAllowed)
    #expect(guarding.verdict(try address("::ffff:10.0.0.1"), port: 443, pinned: false).isAllowed)
    #expect(!guarding.verdict(try address("192.168.0.1"), port: 443, pinned: false).isAllowed)
    for text in ["10.1.0.1", "::ffff:10.1.0.1", "8.8.8.8", "64:ff9b::8.8.8.8", "2002:a01:1::", "64:ff9b::10.1.2.3"] {
      for pinned in [true, false] {
        let verdict = guarding.verdict(try address(text), port: 443, pinned: pinned)
        #expect(verdict == .denied("\(try address(text).unmapped.text) is in destinations.deny"))
      }
    }
  }

  @Test func `allowing a translation prefix does not allow private addresses behind it`() throws {
    let guarding = DestinationGuard(allow: [try block("64:ff9b::/96"), try block("2002::/16"), try block("2001::/32")])
    #expect(guarding.verdict(try address("64:ff9b::8.8.8.8"), port: 443, pinned: false).isAllowed)
    #expect(guarding.verdict(try address("2002:808:808::1"), port: 443, pinned: false).isAllowed)
    #expect(!guarding.verdict(try address("64:ff9b::10.0.0.1"), port: 443, pinned: false).isAllowed)
    #expect(!guarding.verdict(try address("64:ff9b::169.254.169.254"), port: 443, pinned: false).isAllowed)
    #expect(!guarding.verdict(try address("2002:7f00:1::"), port: 443, pinned: false).isAllowed)
    // Teredo keeps the client's address inverted: f5ff:fffe is 10.0.0.1.
    #expect(!guarding.verdict(try address("2001:0:1:2:3:4:f5ff:fffe"), port: 443, pinned: false).isAllowed)
  }

  /// (listener, dialled address, port, refused)
  @Test(
    "No tunnel leads back into the proxy",
    arguments: [
      ("127.0.0.1:3128", "127.0.0.1", 3128, true), ("127.0.0.1:3128", "::ffff:127.0.0.1", 3128, true),
      ("127.0.0.1:3128", "0.0.0.0", 3128, true), ("127.0.0.1:3128", "::", 3128, true),
      ("127.0.0.1:3128", "127.0.0.1", 3129, false), ("127.0.0.1:3128", "10.0.0.1", 3128, false),
      ("0.0.0.0:3128", "127.0.0.1", 3128, true), ("0.0.0.0:3128", "127.0.0.2", 3128, true),
      ("0.0.0.0:3128", "10.0.0.5", 3128, true), ("0.0.0.0:3128", "10.0.0.6", 3128, false),
      ("[::]:3128", "::1", 3128, true), ("[::]:3128", "127.0.0.1", 3128, true), ("[::]:3128", "10.0.0.5", 3128, true),
      ("[::1]:3128", "::1", 3128, true), ("[::1]:3128", "::", 3128, true), ("10.0.0.5:3128", "10.0.0.5", 3128, true),
    ])
  func ownListeners(_ listening: String, _ dialled: String, _ port: UInt16, _ isRefused: Bool) throws {
    let guarding = DestinationGuard(allow: [try block("0.0.0.0/0"), try block("::/0")])
    for pinned in [true, false] {
      let verdict = guarding.verdict(
        try address(dialled), port: port, pinned: pinned, ownListeners: [try listener(listening)],
        isOwnAddress: dialled == "10.0.0.5")
      #expect(verdict.isAllowed != isRefused)
    }
  }

  @Test func `clients are admitted by address`() throws {
    let list = ClientList([try block("127.0.0.0/8"), try block("fd00::/8")])
    #expect(list.allows(try address("127.1.2.3")))
    #expect(list.allows(try address("::ffff:127.0.0.1")))
    #expect(list.allows(try address("fd12::1")))
    #expect(!list.allows(try address("128.0.0.1")))
    #expect(!list.allows(try address("::1")))
    #expect(!ClientList([]).allows(try address("127.0.0.1")))
  }
}
