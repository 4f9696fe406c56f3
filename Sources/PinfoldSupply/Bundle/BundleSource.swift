package import PinfoldConfig
import PinfoldCrypto
package import PinfoldModel
import PinfoldPolicy

/// The bundles of the configuration: which files and URLs, believed on whose word, up to which size.
package struct BundleSource: Sendable {
  /// What a look at all bundles came to.
  package struct Examination: Sendable {
    /// The acceptable one with the highest version, the first of equals.
    package var newest: PolicyBundle?
    /// Why the others are not, in the order of the configuration.
    package var refusals: [BundleRefusal] = []
    /// The URLs whose bundle is acceptable, whether it is the newest or not.
    package var acceptable: [String] = []
    /// URLs that nothing is there from.
    package var missing: [String] = []
    /// The latest end among those that would be acceptable if it were not over; `nil` where one is acceptable.
    package var ended: Timestamp?
    /// Whose signatures count after all rotations among the bundles.
    package var chain: TrustChain
  }

  /// Bytes that are read as one of the bundles.
  private struct Candidate {
    let index: Int
    let file: String
    let bytes: [UInt8]
  }

  private let bundles: [Located]
  private let configurationFile: String
  /// Bytes of a bundle at most.
  package let maxBytes: Int
  /// Whose signatures count before any rotation.
  package let trust: TrustedKeys

  /// Takes the configuration's `policy` section; `file` names the configuration in complaints about its keys. Throws
  /// for keys that are none and for a threshold that cannot be met.
  package init(_ section: PolicySection, file: String) throws(FileErrors) {
    trust = try TrustedKeys(section, file: file)
    bundles = section.bundles
    configurationFile = file
    maxBytes = section.maxBundleBytes
  }

  /// The bundles that are fetched, in their order; each once.
  package var urls: [HTTPURL] {
    var seen: Set<String> = []
    return bundles.filter { Self.isRemote($0.text) && seen.insert($0.text).inserted }.compactMap { HTTPURL($0.text) }
  }

  /// Throws for each bundle whose file does not exist: at start that is a mistake of the configuration, later it is a
  /// refusal like any other.
  package func requireFiles() throws(FileErrors) {
    var complaints: [Complaint] = []
    for bundle in bundles where !Self.isRemote(bundle.text) {
      do throws(FileError) { try PrivateFile.requireRegular(bundle.text) } catch  where error.isMissing {
        complaints.append(
          Complaint(at: bundle.place, path: bundle.path, "no such file: \(bundle.text); sign one with pinfold sign"))
      } catch {
        // What is there and cannot be used is refused with its reason when it is loaded.
        continue
      }
    }
    guard complaints.isEmpty else { throw FileErrors(file: configurationFile, complaints) }
  }

  /// What the files of the configuration hold now.
  package func readFiles() -> BundleFiles {
    BundleFiles(bundles.map(\.text).filter { !Self.isRemote($0) }, limit: maxBytes)
  }

  /// Takes what was read and what was fetched, follows the rotations of keys among them, and looks for the newest.
  ///
  /// - Parameters:
  ///   - files: what the files hold, or held.
  ///   - highest: the highest version ever accepted. An older bundle beside a newer one is none to speak of; alone it
  ///     is a rollback.
  ///   - chain: whose signatures count so far; that of the result when more rotations are found.
  ///   - inForce: the bundle in force, whose version no other contents may have.
  package func examine(
    _ files: BundleFiles, at now: Timestamp, highest: UInt64, chain: TrustChain,
    fetched: FetchedBundles = FetchedBundles(), inForce: PolicyBundle? = nil
  ) -> Examination {
    var result = Examination(chain: chain)
    var refusals: [(index: Int, BundleRefusal)] = []
    let candidates = collect(files, fetched, &result, &refusals)
    var verified = candidates.map { Self.verify($0, chain.current, beside: inForce) }
    while let step = Self.rotation(verified, result.chain, at: now, from: highest) {
      guard result.chain.links.count < TrustChain.limit else {
        let file = candidates[step].file
        refusals.append(
          (candidates[step].index, BundleRefusal(file: file, cause: .rotationLimit(TrustChain.limit))))
        break
      }
      if case .success(let bundle) = verified[step] { result.chain.append(bundle, envelope: candidates[step].bytes) }
      verified = candidates.map { Self.verify($0, result.chain.current, beside: inForce) }
    }
    var older: [(index: Int, BundleRefusal)] = []
    for (candidate, verdict) in zip(candidates, verified) {
      do throws(BundleRefusal) {
        let bundle = try verdict.get()
        try bundle.requireAcceptable(at: now, highest: max(highest, result.chain.version))
        if Self.isRemote(candidate.file) { result.acceptable.append(candidate.file) }
        if bundle.document.version > result.newest?.document.version ?? 0 { result.newest = bundle }
      } catch {
        switch Self.standing(of: error, candidate, result.chain) {
        case .passed: continue
        case .older: older.append((candidate.index, error))
        case .refused: refusals.append((candidate.index, error))
        }
      }
    }
    if let newest = result.newest {
      refusals.removeAll { $0.1.isOutdated(by: newest) }
    } else {
      refusals += older
      result.ended = Self.end(of: verified, at: now, from: max(highest, result.chain.version))
    }
    result.refusals = refusals.sorted { $0.index < $1.index }.map(\.1)
    return result
  }

  private func collect(
    _ files: BundleFiles, _ fetched: FetchedBundles, _ result: inout Examination,
    _ refusals: inout [(index: Int, BundleRefusal)]
  ) -> [Candidate] {
    var candidates: [Candidate] = []
    for (index, bundle) in bundles.enumerated() {
      let path = bundle.text
      do throws(FileError) {
        if !Self.isRemote(path) {
          guard let file = files[path] else { continue }
          candidates.append(Candidate(index: index, file: path, bytes: try file.get()))
        } else if let bytes = fetched.bytes(of: path) {
          // The limit may have changed since.
          guard bytes.count <= maxBytes else { throw .tooLarge(path: path, limit: maxBytes) }
          candidates.append(Candidate(index: index, file: path, bytes: bytes))
        } else {
          result.missing.append(path)
        }
      } catch {
        refusals.append((index, BundleRefusal(file: path, cause: .file(error))))
      }
    }
    return candidates
  }

  private static func verify(
    _ candidate: Candidate, _ trust: TrustedKeys, beside inForce: PolicyBundle?
  ) -> Result<PolicyBundle, BundleRefusal> {
    do throws(BundleRefusal) {
      let bundle = try PolicyBundle(envelope: candidate.bytes, trust: trust, file: candidate.file)
      let version = bundle.document.version
      // Here and not later, so that nobody follows the keys that it names.
      if let inForce, version == inForce.document.version, bundle.payloadDigest != inForce.payloadDigest {
        throw BundleRefusal(file: candidate.file, cause: .versionReused(version))
      }
      return .success(bundle)
    } catch {
      return .failure(error)
    }
  }

  /// The next step of the chain among the bundles: the oldest, so that none is left out.
  private static func rotation(
    _ verified: [Result<PolicyBundle, BundleRefusal>], _ chain: TrustChain, at now: Timestamp, from highest: UInt64
  ) -> Int? {
    var step: (index: Int, version: UInt64)?
    for (index, verdict) in verified.enumerated() {
      guard case .success(let bundle) = verdict, chain.isRotation(bundle) else { continue }
      let version = bundle.document.version
      guard version >= highest, bundle.document.validity(at: now) != .notYetIssued else { continue }
      if version < step?.version ?? .max { step = (index, version) }
    }
    return step?.index
  }

  /// The latest end of those whose time is over. An older version does not count: it could not come back anyway.
  private static func end(
    of verified: [Result<PolicyBundle, BundleRefusal>], at now: Timestamp, from highest: UInt64
  ) -> Timestamp? {
    verified.compactMap { try? $0.get().document }
      .filter { $0.version >= highest && $0.validity(at: now) == .expired }.map(\.expiresAt).max()
  }

  private enum Standing { case refused, older, passed }

  /// How loudly a refusal is told: a bundle that rotated keys before others did has served its purpose, and an older
  /// one matters only where there is no newer one.
  private static func standing(
    of refusal: BundleRefusal, _ candidate: Candidate, _ chain: TrustChain
  ) -> Standing {
    if let digest = (try? Envelope(parsing: candidate.bytes))?.payloadDigest, chain.contains(digest) {
      return chain.links.last?.digest == digest ? .older : .passed
    }
    if case .rollback = refusal.cause { return .older }
    return .refused
  }

  /// Whether a bundle's text is a URL.
  package static func isRemote(_ path: String) -> Bool { path.hasPrefix("https://") }
}
