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
    let alpn: [UInt8]
    let signatureAlgorithms: [UInt16]
    let versions: [UInt16]
    let policyVersion: UInt64

    init(address: SocketAddress, authority: Authority, hello: ClientHello, policyVersion: UInt64) {
      self.address = address
      self.authority = authority
      alpn = hello.alpn.flatMap { [UInt8(clamping: $0.count)] + $0 }
      signatureAlgorithms = hello.signatureAlgorithms
      versions = hello.supportedVersions
      self.policyVersion = policyVersion
    }
  }

  private struct Entry {
    let task: Task<ProbeLeg.Outcome, Never>
    let expires: Deadline
  }

  /// Outcomes kept at most. Beyond it everything is forgotten, which costs a probe per host.
  private static let limit = 4096

  private let entries = Mutex<[Key: Entry]>([:])

  /// The outcome under way or at hand, else the one of the probe that `start` begins. A failed one is not used again.
  func outcome(
    for key: Key, now: Deadline, seconds: Int, start: () -> Task<ProbeLeg.Outcome, Never>
  ) -> Task<ProbeLeg.Outcome, Never> {
    entries.withLock { entries in
      if let entry = entries[key], now < entry.expires { return entry.task }
      if entries.count >= Self.limit { entries.removeAll() }
      let task = start()
      entries[key] = Entry(task: task, expires: now.advanced(by: .seconds(seconds)))
      return task
    }
  }

  /// Lets go of all of them.
  func removeAll() { entries.withLock { $0.removeAll() } }

  /// Lets go of an outcome that is no success.
  func forget(_ key: Key) {
    entries.withLock { $0[key] = nil }
  }
}
