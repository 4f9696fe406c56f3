import PinfoldModel
import PinfoldWire

/// Promises: the cut of the bytes does not matter; a hello is its records and nothing behind them; a twin has the shape
/// of its original and reads back.
enum ClientHelloTarget {
  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    let (first, surplus) = try read(bytes, after: nil)
    guard let first else { return }
    try checkTwin(of: first)
    let (second, _) = try read(surplus, after: first)
    guard let second else { return }
    try BrokenPromise.unless(second.start >= first.end, "the second hello begins inside the first")
  }

  /// Reads a hello in several cuts and answers it with what lies behind.
  private static func read(
    _ bytes: [UInt8], after first: ClientHello?
  ) throws(BrokenPromise) -> (hello: ClientHello?, surplus: [UInt8]) {
    var whole = first.map(ClientHelloReader.init(after:)) ?? ClientHelloReader()
    let event = whole.receive(bytes.span)
    let wanted = summary(event)
    for size in [1, 5, 300] {
      var cut = first.map(ClientHelloReader.init(after:)) ?? ClientHelloReader()
      var answer = ClientHelloReader.Event.incomplete
      for piece in bytes.pieces(of: size) { answer = cut.receive(piece.span) }
      try BrokenPromise.unless(
        summary(answer) == wanted, "in pieces of \(size): \(summary(answer)), at once: \(wanted)")
    }
    guard case .hello(let hello) = event else { return (nil, []) }
    try check(hello, bytes, base: first?.end ?? 0)
    let behind = Array(bytes[(hello.end - (first?.end ?? 0))...])
    try BrokenPromise.unless(whole.surplus.elementsEqual(behind), "bytes behind the hello are lost")
    return (hello, behind)
  }

  private static func check(_ hello: ClientHello, _ bytes: [UInt8], base: Int) throws(BrokenPromise) {
    let (start, end) = (hello.start - base, hello.end - base)
    try BrokenPromise.unless(0 <= start && start < end && end <= bytes.count, "the hello lies outside of what came")
    try BrokenPromise.unless(hello.records == Array(bytes[start..<end]), "the records are not the bytes received")
    try BrokenPromise.unless(
      hello.records.count == hello.message.count + 5 * hello.recordCount, "records and message differ in length")
    try BrokenPromise.unless(Set(hello.extensions.map(\.type)).count == hello.extensions.count, "an extension twice")
    try BrokenPromise.unless(hello.highestVersion != nil, "a hello that offers no version")
    let names = hello.alpn.reduce(0) { $0 + $1.count + 1 }
    try BrokenPromise.unless(names == hello.alpnRange?.count ?? 0, "the ALPN names are not the whole list")
    for host in ["api.pinfold.test", "192.0.2.1"].compactMap({ HostName($0) }) {
      let isNamed = hello.serverName == .host(host)
      let isMissing = hello.serverName == .missing && host.isAddress
      try BrokenPromise.unless(
        (hello.refusal(for: host) == nil) == (isNamed || isMissing), "another host's hello passes")
    }
    var again = ClientHelloReader()
    guard base == 0 else { return }
    guard case .hello(let other) = again.receive(hello.records.span), other.message == hello.message else {
      throw BrokenPromise("the hello's own records do not read as that hello")
    }
  }

  private static func checkTwin(of hello: ClientHello) throws(BrokenPromise) {
    guard hello.offersTLS13 else { return }
    var shares: [UInt16: [UInt8]] = [:]
    for share in hello.keyShares { shares[share.group] = Array(repeating: 0x42, count: share.key.count) }
    let filler = TwinHello.fillerCount(for: hello)
    let material = TwinMaterial(
      random: Array(repeating: 0x17, count: TwinHello.freshCount), shares: shares,
      filler: Array(repeating: 0x19, count: filler))
    let twin: TwinHello
    do throws(TwinImpossible) { twin = try TwinHello(of: hello, with: material) } catch {
      try BrokenPromise.unless(error != .material, "a twin that does not read back")
      return
    }
    try BrokenPromise.unless(twin.bytes.count == hello.records.count, "the twin has another length")
    try BrokenPromise.unless(twin.hello.recordCount == hello.recordCount, "the twin has other records")
    try BrokenPromise.unless(twin.hello.sessionID == hello.sessionID, "the twin has another session id")
    try BrokenPromise.unless(twin.hello.extensions == hello.extensions, "the twin has other extensions")
    try BrokenPromise.unless(twin.hello.cipherSuites == hello.cipherSuites, "the twin has other suites")
    try BrokenPromise.unless(twin.hello.serverName == hello.serverName, "the twin names another host")
  }

  private static func summary(_ event: ClientHelloReader.Event) -> String {
    switch event {
    case .incomplete: "incomplete"
    case .hello(let hello):
      "hello \(hello.start) \(hello.end) \(hello.recordCount) \(hello.message.hashValue) \(hello.droppedEarlyData)"
        + " \(hello.changeCipherSpec.map(\.description) ?? "-")"
    case .refused(let refusal): "refused \(refusal.reason) \(refusal.offset) \(refusal.detail)"
    }
  }
}
