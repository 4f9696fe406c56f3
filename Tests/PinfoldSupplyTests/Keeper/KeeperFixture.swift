import PinfoldConfig
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// A service with a key of its own, and the records it makes.
struct KeeperFixture {
  var maker: RecordMaker
  let service: PinService
  /// When everything begins.
  var start: Timestamp { maker.now }

  init(urls: [String] = ["http://127.0.0.1:1/v1/pins"], ttl: Int = 3600, maxTTL: Int = 86_400) throws {
    maker = try RecordMaker()
    maker.ttl = "\(ttl)"
    maker.expires = Int64(ttl)
    service = try Self.service([maker], urls: urls, maxTTL: maxTTL)
  }

  static func service(
    _ makers: [RecordMaker], urls: [String] = ["http://127.0.0.1:1/v1/pins"], maxTTL: Int = 86_400,
    unbound: Bool = false
  ) throws -> PinService {
    var section = PinServiceSection()
    let place = SourcePlace(line: 1, column: 1)
    section.urls = urls.map { Located($0, place: place, path: "urls") }
    section.trustedKeys = makers.map { Located($0.key.publicKey.text, place: place, path: "trusted_keys") }
    section.minTTLSeconds = 1
    section.maxTTLSeconds = maxTTL
    section.allowUnboundSignatures = unbound
    return try PinService(section, index: 0, file: "pinfold.json5")
  }

  func moment(_ seconds: Int64 = 0) -> PinMoment {
    PinMoment(
      wall: Timestamp(seconds: start.seconds + seconds), steady: 1_000_000_000 * UInt64(1_000_000 + seconds))
  }

  static func host(_ text: String = "api.example.com") throws -> HostName { try #require(HostName(text)) }

  /// The bytes of a record of this domain with pins of one byte repeated, made so many seconds after the start.
  func bytes(_ domain: String = "api.example.com", pin: UInt8 = 0xab, at seconds: Int64 = 0) -> [UInt8] {
    var maker = maker
    maker.domain = "\"\(domain)\""
    maker.pins = "[\"\(Hex.encode([UInt8](repeating: pin, count: 32)))\"]"
    maker.created = seconds
    maker.expires += seconds
    return maker.ed25519
  }

  /// Such a record, received when it was made or later.
  func held(
    _ domain: String = "api.example.com", for host: String = "api.example.com", pin: UInt8 = 0xab,
    at seconds: Int64 = 0,
    received: Int64? = nil
  ) throws -> HeldPins {
    let bytes = bytes(domain, pin: pin, at: seconds)
    let arrival = moment(received ?? seconds).wall
    let record = try service.record(bytes, for: Self.host(host), at: arrival)
    return HeldPins(record, bytes: bytes, received: arrival, trust: service.trust)
  }

  static func digest(_ pin: UInt8) throws -> Digest256 { try #require(Digest256([UInt8](repeating: pin, count: 32))) }
}

extension PinKeeper {
  /// The byte that the pins at hand repeat, where the cache has no more of the host; `nil` when none are fresh.
  mutating func pin(_ host: String, _ service: PinService, _ moment: PinMoment, isUse: Bool = true) throws -> UInt8? {
    let host = try KeeperFixture.host(host)
    meet(host, service)
    guard case .fresh(let held) = look(host, service, at: moment, isUse: isUse),
      case .publicKey(let digest) = held.record.pins[0]
    else { return nil }
    return digest.bytes[0]
  }

  /// The hosts that are due, all of them of one service.
  mutating func due(_ service: PinService, at moment: PinMoment, atMost count: Int = 9) -> [HostName] {
    due(at: moment, atMost: count) { _ in service }.map(\.host)
  }

  /// Fetches as a tunnel would, and takes what came.
  @discardableResult mutating func take(
    _ held: HeldPins, _ host: String, _ service: PinService, _ moment: PinMoment, jitter: Double = 0
  ) throws -> CachedPins? {
    let host = try KeeperFixture.host(host)
    _ = demand(host, service, at: moment)
    return store(held, for: host, service, at: moment, jitter: jitter)?.writes.first?.cached
  }
}
