import PinfoldModel
import PinfoldPolicy

extension ConfigurationReader {
  func tls(_ reader: ObjectReader) -> TLSSection {
    var reader = reader
    var result = TLSSection()
    let mode = reader.field("tls13")
    result.tls13 = mode?.choice(TLS13Mode.self) ?? result.tls13
    result.probeReuseSeconds = reader.field("probe_reuse_seconds")?.integer(in: 0...3600) ?? 0
    result.resumption = reader.field("resumption")?.choice(EvidenceChoice.self) ?? result.resumption
    result.pskDeclined = reader.field("psk_declined")?.choice(EvidenceChoice.self) ?? result.pskDeclined
    result.caFile = reader.optional("ca_file").flatMap(file)
    result.keyLog = reader.optional("key_log").flatMap(path)
    reader.finish()
    if result.tls13 == .keyLog, result.keyLog == nil {
      mode?.complain("\"key_log\" needs tls.key_log, the path of the pipe that apps write to")
    }
    return result
  }

  func destinations(_ reader: ObjectReader) -> DestinationsSection {
    var reader = reader
    var result = DestinationsSection()
    for (key, name, value) in reader.field("resolve")?.entries("an object from hosts to addresses") ?? [] {
      let address = value.parsed("an address such as \"127.0.0.1:8443\"") { SocketAddress($0) }
      guard let pattern = key.pattern(exact: true) else { continue }
      guard let port = pattern.port else {
        key.complain("\"\(name)\": expected a host with its port, such as \"\(name):443\"")
        continue
      }
      guard let address else { continue }
      if result.resolve.updateValue(address, forKey: Authority(host: pattern.host, port: port)) != nil {
        key.complain("\(pattern.text) is there already")
      }
    }
    if let elements = reader.field("ports")?.elements("a list of ports") {
      result.ports = Set(elements.compactMap { $0.integer(in: 1...65_535).map { UInt16(truncatingIfNeeded: $0) } })
    }
    result.allow = reader.field("allow").flatMap(blocks) ?? []
    result.deny = reader.field("deny").flatMap(blocks) ?? []
    reader.finish()
    return result
  }

  func access(_ reader: ObjectReader) -> AccessSection {
    var reader = reader
    var result = AccessSection()
    result.clients = reader.field("clients").flatMap(blocks) ?? result.clients
    result.credentialsFile = reader.optional("credentials_file").flatMap(path)
    reader.finish()
    return result
  }

  func limits(_ reader: ObjectReader) -> LimitsSection {
    var reader = reader
    var result = LimitsSection()
    result.tunnels = reader.field("tunnels")?.integer(in: 0...10_000_000) ?? result.tunnels
    result.connectSeconds = reader.field("connect_seconds")?.integer(in: 1...300) ?? result.connectSeconds
    result.handshakeSeconds = reader.field("handshake_seconds")?.integer(in: 1...300) ?? result.handshakeSeconds
    result.idleSeconds = reader.field("idle_seconds")?.integer(in: 1...604_800) ?? result.idleSeconds
    result.drainSeconds = reader.field("drain_seconds")?.integer(in: 0...86_400) ?? result.drainSeconds
    reader.finish()
    return result
  }

  func instance(_ reader: ObjectReader) -> InstanceSection {
    var reader = reader
    var result = InstanceSection()
    result.id = reader.optional("id")?.string()
    result.appVersion = reader.optional("app_version")?.parsed("a version such as \"1.5.0\"") { AppVersion($0) }
    result.region = reader.optional("region")?.string()
    reader.finish()
    return result
  }

  func audit(_ reader: ObjectReader) -> AuditSection {
    var reader = reader
    var result = AuditSection()
    let field = reader.optional("file")
    result.file = field.flatMap(file)
    if result.file?.text.hasSuffix("/") == true { field?.complain("expected a file, such as \"audit.jsonl\"") }
    result.client = reader.field("client")?.choice(AuditSection.Client.self) ?? result.client
    result.retentionDays = reader.field("retention_days")?.integer(in: 1...36_500) ?? result.retentionDays
    reader.finish()
    return result
  }

  func log(_ reader: ObjectReader) -> LogSection {
    var reader = reader
    var result = LogSection()
    result.level = reader.field("level")?.choice(LogSection.Level.self) ?? result.level
    result.format = reader.field("format")?.choice(LogSection.Format.self) ?? result.format
    reader.finish()
    return result
  }
}
