import PinfoldConfig
import PinfoldCrypto
import PinfoldTelemetry

/// What the configuration says of the audit, ready to be used.
struct AuditSettings: Sendable {
  /// How clients are called.
  enum Clients: Sendable {
    case address
    case pseudonym(KeyedHash)
    /// There is no key to make a pseudonym with: an address is never written by mistake.
    case hidden
  }

  /// Name of the key file in the state directory.
  private static let keyName = "audit.key"

  let file: AuditFileName
  let retentionDays: Int
  let clients: Clients

  init(file: AuditFileName, retentionDays: Int, clients: Clients) {
    self.file = file
    self.retentionDays = retentionDays
    self.clients = clients
  }

  /// Whether what was recorded under these settings may be written under those: to the same file, with clients called alike.
  func agree(with other: AuditSettings?) -> Bool {
    guard let other, file == other.file else { return false }
    return switch (clients, other.clients) {
    case (.address, .address), (.pseudonym, .pseudonym), (.hidden, .hidden): true
    default: false
    }
  }

  /// The settings of a configuration, `nil` when it wants no audit. The key of the pseudonyms is the installation's: made
  /// once and kept in the state directory. Where it cannot be kept, a key of this process's stands in, with a warning.
  init?(_ configuration: Configuration, warnings: inout [String]) {
    guard let file = configuration.audit.file.flatMap({ AuditFileName($0.text) }) else { return nil }
    let clients: Clients =
      switch configuration.audit.client {
      case .address: .address
      case .hash: Self.pseudonyms(keptIn: configuration.stateDirectory, &warnings)
      }
    self.init(file: file, retentionDays: configuration.audit.retentionDays, clients: clients)
  }

  private static func pseudonyms(keptIn directory: String, _ warnings: inout [String]) -> Clients {
    do {
      try PrivateFile.makeDirectory(directory)
      return .pseudonym(try KeyedHash.loadOrCreate(path: "\(directory)/\(keyName)", warnings: &warnings))
    } catch {
      warnings.append("the key of client pseudonyms is this process's own, and they change at a restart: \(error)")
    }
    return (try? KeyedHash()).map { .pseudonym($0) } ?? .hidden
  }
}

/// What became of the records so far.
struct AuditFigures: Encodable, Equatable, Sendable {
  /// Records in the file.
  var written: UInt64 = 0
  /// Records that no file has: too many were waiting, or their file could not be written before it was another one.
  var lost: UInt64 = 0
  /// Why records cannot be written at the moment.
  var error: String?
}
