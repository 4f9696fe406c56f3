/// What facts.json says of a captured connection, as far as a verdict can depend on it. Another parser worked it out.
struct CaptureFacts: Decodable, Sendable {
  struct Hello: Decodable, Sendable {
    var legacyVersion: String
    var sessionIdLength: Int
    var supportedVersions: [String]
    var end: Int
  }

  struct OldHello: Decodable, Sendable {
    var end: Int
  }

  struct SecondHello: Decodable, Sendable {
    var start: Int
    var end: Int
  }

  struct Retry: Decodable, Sendable {
    var end: Int
    var clientHello2: SecondHello
  }

  struct ServerHello: Decodable, Sendable {
    var end: Int
  }

  /// `end` is missing where nobody could decrypt the flight.
  struct Offsets: Decodable, Sendable {
    var start: Int
    var end: Int?
  }

  /// `["c", 213]`: who sent how many bytes, in the order the recorder read them.
  struct Step: Decodable, Sendable {
    var side: String
    var count: Int

    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      side = try list.decode(String.self)
      count = try list.decode(Int.self)
    }
  }

  var outcome: String
  /// `TLS1.2`; missing where no version was agreed on.
  var version: String?
  /// The name in the hello.
  var sni: String?
  /// `SSL 2.0 style hello` where the client does not begin with a TLS record.
  var clientSpeaks: String?
  var keyExchange: String?
  var keyProof: String?
  var signatureVerified: Bool?
  var serverCertificateType: String?
  var rawPublicKeySpkiSha256: String?
  var leafSpkiSha256: String?
  var leafSha256: String?
  var chainVerifies: Bool?
  var nameMatches: Bool?
  var downgradeSentinel: Bool?
  var pair: String?
  var clientHello: Hello?
  var ssl2Hello: OldHello?
  var helloRetry: Retry?
  var serverHello: ServerHello?
  var serverFlight: Offsets?
  var flow: [Step]
}
