/// What facts.json says, as far as these layers can tell.
struct Facts: Decodable, Sendable {
  struct Hello: Decodable, Sendable {
    var legacyVersion: String
    var random: String
    var sessionIdLength: Int
    var cipherSuites: [String]
    var compressionMethods: [UInt8]
    var extensions: [UInt16]
    var sni: String?
    var alpn: [String]
    var supportedVersions: [String]
    var supportedGroups: [String]
    var keyShares: [Share]
    var signatureAlgorithms: [String]
    var grease: Bool
    var ech: String?
    var sessionTicketLength: Int?
    var pskIdentities: [Int]
    var earlyData: Bool
    var statusRequest: Bool
    var compressCertificate: [String]
    var start: Int
    var end: Int
    var records: Int
    var recordVersion: String
    var messageLength: Int
  }

  /// `["0x001d", 32]`: a group and the length of its share.
  struct Share: Decodable, Equatable, Sendable {
    var group: String
    var length: Int

    init(group: String, length: Int) {
      self.group = group
      self.length = length
    }

    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      group = try list.decode(String.self)
      length = try list.decode(Int.self)
    }
  }

  struct SecondHello: Decodable, Sendable {
    var start: Int
    var end: Int
    var sni: String?
    var keyShares: [Share]
    var extensions: [UInt16]
    var earlyData: Bool
  }

  struct Retry: Decodable, Sendable {
    var end: Int
    var group: String?
    var cookieLength: Int?
    var clientHello2: SecondHello
  }

  struct ServerHello: Decodable, Sendable {
    var end: Int
    var random: String
    var sessionIdLength: Int
    var extensions: [UInt16]
    var recordVersion: String
  }

  struct Number: Decodable, Sendable {
    var id: String?
    var name: String
  }

  /// `end` is missing where nobody could decrypt the flight.
  struct Offsets: Decodable, Sendable {
    var start: Int
    var end: Int?
  }

  /// `["c", 213]`: who sent how many bytes.
  struct Step: Decodable, Sendable {
    var side: String
    var length: Int

    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      side = try list.decode(String.self)
      length = try list.decode(Int.self)
    }
  }

  struct Alert: Decodable, Sendable {
    var from: String
    var at: Int
    var level: UInt8
    var description: UInt8
  }

  var outcome: String
  var version: String?
  var cipherSuite: Number?
  var alpn: String?
  var certificatesCount: Int
  var keyExchange: String?
  var group: String?
  var signatureScheme: Number?
  var keyProof: String?
  var serverCertificateType: String?
  var clientHello: Hello?
  var helloRetry: Retry?
  var serverHello: ServerHello?
  var serverFlight: Offsets?
  var serverMessagesClear: [String]?
  var ticketPromised: Bool?
  var downgradeSentinel: Bool?
  var certificateRequested: Bool?
  var ocspStapled: Bool?
  var certificateMessageLength: Int?
  var pskSelected: Int?
  var clearAlerts: [Alert]?
  var newSessionTicketClear: Bool?
  var pair: String?
  var flow: [Step]?
}
