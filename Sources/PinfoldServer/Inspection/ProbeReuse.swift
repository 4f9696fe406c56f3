import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldWire
import Synchronization

/// Outcomes of probes for `tls.probe_reuse_seconds`: single-flight, bounded, expiring.
final class ProbeReuse: Sendable {
  /// Everything by which an upstream could answer two hellos differently.
  struct Key: Hashable, Sendable {
    let address: SocketAddress
    let authority: Authority
    /// SHA-256 over the lists of the hello that count, each with its length: a hello may have 64 KB of them.
    let offered: Digest256
    let policyVersion: UInt64

    init(address: SocketAddress, authority: Authority, hello: ClientHello, policyVersion: UInt64) {
      self.address = address
      self.authority = authority
      var bytes: [UInt8] = []
      for protocolName in hello.alpn { bytes += [UInt8(clamping: protocolName.count)] + protocolName }
      for list in [hello.signatureAlgorithms, hello.supportedVersions] {
        // No name of a protocol is empty.
        bytes.append(0)
        for number in list { bytes += [UInt8(number >> 8), UInt8(number & 255)] }
        bytes += [UInt8(list.count >> 8 & 255), UInt8(list.count & 255)]
      }
      offered = SHA256.digest(bytes)
      self.policyVersion = policyVersion
    }
  }

  private struct Entry {
    let task: Task<ProbeLeg.Outcome, Never>
    let expires: Deadline
  }

  /// Outcomes kept at most. Beyond it everything is forgotten, which costs a probe per host.
  private static let limit = 4096
  /// Bytes of certificates, or of a raw public key, with which an outcome is kept at most.
  private static let sizeLimit = 16_384

  private struct Entries {
    var byKey: [Key: Entry] = [:]
    /// With how many those that have expired are looked for.
    var sweepAt = 64
  }

  private let entries = Mutex(Entries())

  /// Whether an outcome may serve another tunnel.
  static func isKept(_ outcome: ProbeLeg.Outcome) -> Bool {
    guard case .finished(let seen) = outcome else { return false }
    return switch seen.key {
    case .certificates(let certificates): certificates.reduce(0) { $0 + $1.count } <= sizeLimit
    case .rawPublicKey(let key): key.count <= sizeLimit
    }
  }

  /// The outcome under way or at hand, else the one of the probe that `start` begins. A failed one is not used again.
  func outcome(
    for key: Key, now: Deadline, seconds: Int, start: () -> Task<ProbeLeg.Outcome, Never>
  ) -> Task<ProbeLeg.Outcome, Never> {
    entries.withLock { entries in
      if let entry = entries.byKey[key], now < entry.expires { return entry.task }
      if entries.byKey.count >= entries.sweepAt {
        entries.byKey = entries.byKey.filter { now < $0.value.expires }
        if entries.byKey.count >= Self.limit { entries.byKey.removeAll() }
        entries.sweepAt = min(Self.limit, max(64, 2 * entries.byKey.count))
      }
      let task = start()
      entries.byKey[key] = Entry(task: task, expires: now.advanced(by: .seconds(seconds)))
      return task
    }
  }

  /// Lets go of all of them.
  func removeAll() { entries.withLock { $0.byKey.removeAll() } }

  /// Lets go of an outcome that is not kept.
  func forget(_ key: Key) {
    entries.withLock { $0.byKey[key] = nil }
  }
}
