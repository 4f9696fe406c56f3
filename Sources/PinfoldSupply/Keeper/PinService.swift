package import PinfoldConfig
import PinfoldCrypto
package import PinfoldModel
import PinfoldTLS

/// One element of `pin_services`, ready to be asked: its addresses read, its keys and authorities loaded. Immutable.
package final class PinService: Sendable {
  /// What a record of the service is held against beside clock and host. Pins that were verified under one trust are
  /// verified again before another believes them.
  package struct Trust: Hashable, Sendable {
    var keys: Set<String>
    var minTTLSeconds: Int
    var maxTTLSeconds: Int
    var allowsUnbound: Bool
  }

  /// Where records are fetched, in the order of trying; at least one.
  package let urls: [HTTPURL]
  /// Whose signatures count.
  package let keys: PinServiceKeys
  /// The configuration's words.
  package let section: PinServiceSection
  /// Makes the TLS sessions for `https` URLs; `nil` where there are none.
  package let security: (any TLSSessionSource)?
  /// What its records are held against.
  package let trust: Trust

  /// Reads keys, URLs and `ca_file` of a section. `index` is its place in `pin_services`, `file` the configuration's
  /// name. Throws everything that cannot be used.
  package init(_ section: PinServiceSection, index: Int, file: String) throws(FileErrors) {
    keys = try PinServiceKeys(section, file: file)
    var urls: [HTTPURL] = []
    var complaints: [Complaint] = []
    for located in section.urls {
      if let url = HTTPURL(located.text) {
        urls.append(url)
      } else {
        complaints.append(
          Complaint(
            at: located.place, path: located.path,
            "no URL that can be fetched: right would be https://pins.example.com/v1/pins"))
      }
    }
    guard complaints.isEmpty else { throw FileErrors(file: file, complaints) }
    self.urls = urls
    self.section = section
    do throws(TLSError) {
      if urls.contains(where: \.isSecure) {
        let store = if let caFile = section.caFile { try TrustStore(caFile: caFile.text) } else { try TrustStore() }
        security = try ClientContext(trusting: store)
      } else {
        security = nil
      }
    } catch {
      throw FileErrors(
        file: file, [Complaint(at: section.caFile?.place, path: "pin_services[\(index)].ca_file", error.description)])
    }
    trust = Trust(
      keys: Set(section.trustedKeys.map(\.text)), minTTLSeconds: section.minTTLSeconds,
      maxTTLSeconds: section.maxTTLSeconds, allowsUnbound: section.allowUnboundSignatures)
  }

  /// What the service is called in metrics, log and status: its first URL without user, path or query.
  package var label: String { urls.first?.origin ?? "none" }

  /// The record behind `bytes`, held against this service. `received` is when the bytes arrived.
  package func record(
    _ bytes: [UInt8], for host: HostName, at now: Timestamp, received: Timestamp? = nil
  ) throws(PinRecordError) -> PinRecord {
    try PinRecord(
      parsing: bytes, keys: keys,
      terms: PinRecordTerms(host: host, now: now, received: received, service: section))
  }
}

extension HTTPURL {
  /// Scheme, host and port: `https://pins.example.com`.
  package var origin: String { "\(isSecure ? "https" : "http")://\(hostField)" }
}
