package import PinfoldCrypto
package import PinfoldModel

/// What was accepted so far, as the state directory remembers it: two or three lines behind a first one that names the
/// format.
///
///     pinfold-state v1
///     highest_version 7
///     clock_floor 2026-11-21T00:00:00Z
///     rotation (64 digits) (64 digits)
package struct AcceptedState: Equatable, Sendable {
  /// The highest policy version ever accepted; 0 for none.
  package var highestVersion: UInt64 = 0
  /// A time that has passed for certain: a clock that shows an earlier one was set back. It counts without any policy too.
  package var clockFloor = Timestamp(seconds: 0)
  /// That keys were rotated; `nil` while the configured ones count. It says for whom old keys are not enough, and never
  /// whose keys are: those are read from the bundles themselves.
  package var rotation: Rotation?

  /// A rotation of keys that was accepted.
  package struct Rotation: Equatable, Sendable {
    /// `TrustedKeys.digest` of the configured keys it began with.
    package var configured: Digest256
    /// The payload's digest of the last bundle that rotated them.
    package var last: Digest256

    /// That the bundle `last` rotated keys that began with `configured`.
    package init(configured: Digest256, last: Digest256) {
      self.configured = configured
      self.last = last
    }
  }

  /// Nothing accepted yet.
  package init() {}

  /// Reads the file's contents, which have to be exactly as written by `bytes`; `nil` for anything else.
  init?(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard lines.count == 4 || lines.count == 5, let version = UInt64(lines[1].dropFirst(Self.versionKey.count)),
      let floor = Timestamp(lines[2].dropFirst(Self.floorKey.count))
    else { return nil }
    highestVersion = version
    clockFloor = floor
    if lines.count == 5 {
      let digests = lines[3].dropFirst(Self.rotationKey.count).split(separator: " ").map {
        Hex.decode($0).flatMap { Digest256($0) }
      }
      guard digests.count == 2, let configured = digests[0], let last = digests[1] else { return nil }
      rotation = Rotation(configured: configured, last: last)
    }
    // One spelling only: whatever differs was not written by us.
    guard self.bytes == bytes else { return nil }
  }

  private static let firstLine = "pinfold-state v1"
  private static let versionKey = "highest_version "
  private static let floorKey = "clock_floor "

  private static let rotationKey = "rotation "

  var bytes: [UInt8] {
    var text = "\(Self.firstLine)\n\(Self.versionKey)\(highestVersion)\n\(Self.floorKey)\(clockFloor.text)\n"
    if let rotation { text += "\(Self.rotationKey)\(rotation.configured.hex) \(rotation.last.hex)\n" }
    return Array(text.utf8)
  }

  /// Takes note of an accepted bundle, which cannot have been issued later than now.
  mutating func note(version: UInt64, issuedAt: Timestamp) {
    highestVersion = max(highestVersion, version)
    clockFloor = max(clockFloor, issuedAt)
  }

  /// Takes note that it is this late.
  ///
  /// The floor never rises beyond the end of the policy it is noted under: a clock that ran ahead makes that policy look
  /// expired, which is safe, and a newly signed one that ends later mends it.
  mutating func note(_ now: Timestamp, notBeyond end: Timestamp) {
    clockFloor = max(clockFloor, min(now, end))
  }
}

/// Why the remembered state cannot be used.
package enum StateError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file is there and cannot be read.
  case unreadable(FileError)
  /// The file holds something else than its format.
  case corrupt(path: String)
  /// The state could not be written: it holds for this process only.
  case unwritable(FileError)

  /// One line that says what to do.
  package var description: String {
    switch self {
    case .unreadable(let error): "the state file cannot be read: \(error)"
    case .corrupt(let path):
      "\(path): damaged; put it back from a backup, or remove it to start anew without protection against older policies"
    case .unwritable(let error): "the state cannot be kept: \(error); after a restart an older policy could come back"
    }
  }
}

/// The file of the state directory that holds `AcceptedState`.
package struct StateFile: Sendable {
  private static let name = "policy.state"
  private static let limit = 4096

  private let directory: String
  /// Where the state lies.
  package var path: String { directory + "/" + Self.name }

  /// `directory` is `state_dir`; it is made (mode 0700) when first written to.
  package init(directory: String) { self.directory = directory }

  /// What is remembered; nothing yet when there is no file. Throws `unreadable` or `corrupt`.
  package func read() throws(StateError) -> AcceptedState {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try PrivateFile.read(path, limit: Self.limit).bytes } catch {
      if error.isMissing { return AcceptedState() }
      if case .tooLarge = error { throw .corrupt(path: path) }
      throw .unreadable(error)
    }
    guard let state = AcceptedState(bytes) else { throw .corrupt(path: path) }
    return state
  }

  /// Remembers that a time has passed for certain, where no policy is in force under which it could end. What else is
  /// remembered stays. Throws `unreadable`, `corrupt` or `unwritable`.
  package func raise(clockFloor time: Timestamp) throws(StateError) {
    var state = try read()
    guard time > state.clockFloor else { return }
    state.clockFloor = time
    try write(state)
  }

  /// Remembers `state`, whole or not at all (mode 0600). Throws `unwritable`.
  package func write(_ state: AcceptedState) throws(StateError) {
    do throws(FileError) {
      try PrivateFile.makeDirectory(directory)
      try PrivateFile.replace(path, bytes: state.bytes)
    } catch { throw .unwritable(error) }
  }
}
