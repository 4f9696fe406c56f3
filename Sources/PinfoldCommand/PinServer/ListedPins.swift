import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Synchronization

/// Pins from a file, read again when the operator says so.
final class ListedPins: PinLookUp {
  private let path: String
  private let table: Mutex<RuleTable>

  /// Reads the file. Its mistakes are the failure, whose status is `config`.
  init(path: String) throws(CommandFailure) {
    self.path = path
    table = Mutex(try Self.read(path))
  }

  private static func read(_ path: String) throws(CommandFailure) -> RuleTable {
    let bytes = try CommandFailure.reading(path, limit: PinList.byteLimit)
    do throws(FileErrors) { return try PinList(reading: bytes, file: path).table } catch {
      throw CommandFailure(.config, error.text)
    }
  }

  /// Reads the file again; a mistake in it changes nothing. Answers the number of its hosts.
  func reload() throws(CommandFailure) -> Int {
    let new = try Self.read(path)
    table.withLock { $0 = new }
    return new.count
  }

  /// The hosts of the file.
  var patterns: [HostPattern] {
    let table = table.withLock(\.self)
    return table.rules.compactMap { try? HostPattern($0.pattern) }
  }

  func pins(of host: HostName) async -> Result<HostPins, PinLookUpFailure> {
    let rule = table.withLock(\.self).rule(for: Authority(host: host, port: 443))
    let keys = (rule?.pins.entries ?? []).map { entry in
      switch entry.pin {
      case .publicKey(let digest), .certificate(let digest): digest
      }
    }
    return keys.isEmpty ? .failure(.unknown("not in the list of pins")) : .success(HostPins(keys: keys))
  }
}
