import FoundationEssentials
package import PinfoldCrypto
import PinfoldModel
import Synchronization

/// Named records in `state_dir/cache`, each in a file of its own, sealed so that they can be neither read nor altered nor
/// exchanged without the key.
///
/// A file is called after its kind and a keyed hash of the record's name: who has the directory and not the key learns
/// how many records of each kind there are, about how large they are and when they were written, and no host. Writes are
/// whole or not at all, whenever the process ends. What is damaged costs that record and no other.
///
/// From any thread; each call does file work and may wait for the disk, so none belongs on a worker's loop.
package final class SealedCache: Sendable {
  /// A record with its name.
  package struct Record: Equatable, Sendable {
    /// As given to `write`.
    package var name: String
    /// As given to `write`.
    package var contents: [UInt8]
  }

  /// Bytes of a record's name: a host and a port have fewer.
  private static let nameLimit = 1024
  /// Digits of the keyed hash in a file's name.
  private static let hashDigits = 64
  private static let leftoverSuffix = ".new"

  private let directory: String
  private let key: SealingKey
  private let hash: KeyedHash
  private let fixedLimit: Int?
  /// Records of each kind, as far as this process knows. Counted anew before it says that a kind is full.
  private let counts = Mutex<[CacheKind: Int]>([:])
  /// Whether there was something in the directory when this process last looked or wrote. When that is gone since, the
  /// records are somewhere else and not forgotten.
  private let hadFiles = Atomic<Bool>(false)

  static func directory(in stateDirectory: String) -> String { stateDirectory + "/cache" }

  /// A cache in `directory`, which is made (mode 0700) when first written to. Its parent has to exist by then. One that
  /// had records and is gone is not made anew.
  ///
  /// `countLimit`: records of each kind at a time; `nil` for the kind's own limit.
  package init(directory: String, key: SealingKey, countLimit: Int? = nil) throws(CryptoError) {
    self.directory = directory
    fixedLimit = countLimit
    self.key = key
    hash = try key.derivedHash(number: 1)
  }

  /// The cache of a state directory, which is made where it is missing. The key is that of `keyFile`, or of
  /// `cache.key` in the state directory; a new one is made where there is none. Throws when there is no key to be had:
  /// then nothing can be cached, and nothing that was can be read.
  package convenience init(
    stateDirectory: String, keyFile: String?, warnings: inout [String]
  ) throws(CryptoError) {
    do throws(FileError) { try PrivateFile.makeDirectory(stateDirectory) } catch { throw .file(error) }
    let path = keyFile ?? stateDirectory + "/cache.key"
    try self.init(
      directory: Self.directory(in: stateDirectory), key: try SealingKey.loadOrCreate(path: path, warnings: &warnings))
  }

  /// The cache of a state directory as it is, for those who only look: no key and no directory is made. `nil` where
  /// there is no key yet, and one could be made.
  package static func existing(stateDirectory: String, keyFile: String?) throws(CryptoError) -> SealedCache? {
    var warnings: [String] = []
    do throws(CryptoError) {
      let key = try SealingKey(path: keyFile ?? stateDirectory + "/cache.key", warnings: &warnings)
      return try SealedCache(directory: directory(in: stateDirectory), key: key)
    } catch {
      let folder = keyFile.map { $0[..<($0.lastIndex(of: "/") ?? $0.startIndex)] } ?? ""
      let hasPlace = folder.isEmpty || FileManager.default.fileExists(atPath: String(folder))
      if case .file(let fault) = error, fault.isMissing, hasPlace { return nil }
      throw error
    }
  }

  // MARK: One record

  /// The contents of a record; `nil` where there is none. Throws `unreadable`, `unlisted` or `broken`.
  package func read(_ kind: CacheKind, _ name: String) throws(CacheError) -> [UInt8]? {
    let file = fileName(kind, name)
    guard let record = try read(kind, file: file) else { return nil }
    guard record.name == Array(name.utf8) else { throw .broken(path: path(file)) }
    return record.contents
  }

  /// Whether there is a record of this name, readable or not.
  package func holds(_ kind: CacheKind, _ name: String) -> Bool { holds(file: fileName(kind, name)) }

  private func holds(file: String) -> Bool { (try? PrivateFile.requireRegular(path(file))) != nil }

  /// Keeps a record in the place of the one of this name. When it returns the record survives a crash; when it throws
  /// the one before is still there. Throws `tooLarge`, `full`, `unlisted`, `unwritable` or `crypto`.
  package func write(_ kind: CacheKind, _ name: String, _ contents: [UInt8]) throws(CacheError) {
    guard contents.count <= kind.sizeLimit, name.utf8.count <= Self.nameLimit else {
      throw .tooLarge(kind, count: contents.count)
    }
    let file = fileName(kind, name)
    let bytes: [UInt8]
    let tag: String
    do throws(CryptoError) {
      bytes = try SealedRecord(name: Array(name.utf8), contents: contents).seal(file: file, key: key)
      // Another process may be writing the same record: each has a temporary file of its own.
      tag = Hex.encode(try Random.bytes(8))
    } catch { throw .crypto(error) }
    if !holds(file: file) { try claimRoom(kind) }
    do throws(FileError) {
      if !hadFiles.load(ordering: .relaxed) { try PrivateFile.makeDirectory(directory) }
      try PrivateFile.replace(path(file), bytes: bytes, temporary: "\(path(file)).\(tag)\(Self.leftoverSuffix)")
      hadFiles.store(true, ordering: .relaxed)
    } catch {
      // Whatever was counted is counted anew next time.
      counts.withLock { $0[kind] = nil }
      throw .unwritable(error)
    }
  }

  /// Removes a record; one that is not there is removed already. Throws `unwritable`.
  package func remove(_ kind: CacheKind, _ name: String) throws(CacheError) {
    try remove(kind, file: fileName(kind, name))
  }

  // MARK: All records

  /// Every record of a kind that can be read, sorted by name, and why the others, or all of them, cannot.
  package func all(_ kind: CacheKind) -> (records: [Record], refusals: [CacheError]) {
    do throws(CacheError) {
      let (records, refusals, _) = try survey(kind)
      return (records, refusals)
    } catch {
      return ([], [error])
    }
  }

  /// The file of a record: what `survey` calls a damaged one by. Does no file work.
  package func file(_ kind: CacheKind, _ name: String) -> String { fileName(kind, name) }

  /// The same as `all`, with the files of the records that cannot be read. Throws `unlisted` where it is not known which
  /// records there are.
  package func survey(
    _ kind: CacheKind
  ) throws(CacheError) -> (records: [Record], refusals: [CacheError], damaged: Set<String>) {
    var records: [Record] = []
    var refusals: [CacheError] = []
    var damaged: Set<String> = []
    for file in try files(kind) {
      do throws(CacheError) {
        guard let record = try read(kind, file: file) else { continue }
        let name = String(decoding: record.name, as: UTF8.self)
        guard fileName(kind, name) == file else { throw .broken(path: path(file)) }
        records.append(Record(name: name, contents: record.contents))
      } catch {
        refusals.append(error)
        damaged.insert(file)
      }
    }
    return (records.sorted { $0.name < $1.name }, refusals, damaged)
  }

  /// When a record was last added, replaced or removed, in seconds since 1970; `nil` while there is no directory. Two
  /// changes within some milliseconds may have the same time.
  package var lastChange: Double? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: directory)
    return (attributes?[.modificationDate] as? Date)?.timeIntervalSince1970
  }

  /// Removes what writers left behind that did not come to an end. To be called once, at the start of the one process
  /// that serves from this directory.
  package func removeLeftovers() {
    let leftovers = (try? Self.entries(of: directory))?.filter { $0.hasSuffix(Self.leftoverSuffix) } ?? []
    for file in leftovers { try? PrivateFile.remove(path(file)) }
  }

  // MARK: Files

  func countLimit(_ kind: CacheKind) -> Int { fixedLimit ?? kind.countLimit }

  private func path(_ file: String) -> String { directory + "/" + file }

  private func fileName(_ kind: CacheKind, _ name: String) -> String {
    "\(kind.rawValue)-\(hash.digest(Array("\(kind.rawValue)/\(name)".utf8)).hex)"
  }

  func remove(_ kind: CacheKind, file: String) throws(CacheError) {
    do throws(FileError) { try PrivateFile.remove(path(file)) } catch { throw .unwritable(error) }
    counts.withLock { $0[kind] = nil }
  }

  func read(_ kind: CacheKind, file: String) throws(CacheError) -> SealedRecord? {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try PrivateFile.read(path(file), limit: SealedRecord.fileLimit(kind.sizeLimit + Self.nameLimit)).bytes
    } catch {
      if error.isMissing {
        guard !hadFiles.load(ordering: .relaxed) || lastChange != nil else { throw .unlisted(error) }
        return nil
      }
      if case .tooLarge = error { throw .broken(path: path(file)) }
      throw .unreadable(error)
    }
    do throws(CryptoError) { return try SealedRecord(opening: bytes, file: file, key: key) } catch {
      if error == .sealBroken { throw .broken(path: path(file)) }
      throw .crypto(error)
    }
  }

  /// None while there is no directory, unless it is known to have been there. One that the system does not show is no empty one.
  static func entries(of directory: String, isGoneEmpty: Bool = true) throws(CacheError) -> [String] {
    do throws(FileError) { return try PrivateFile.list(directory) } catch {
      if error.isMissing, isGoneEmpty { return [] }
      throw .unlisted(error)
    }
  }

  /// Those of a directory's entries that are records of a kind, for which no key is needed.
  static func records(_ kind: CacheKind, among entries: [String]) -> [String] {
    let prefix = "\(kind.rawValue)-"
    return entries.filter { $0.hasPrefix(prefix) && $0.utf8.count == prefix.utf8.count + hashDigits }
  }

  func files(_ kind: CacheKind) throws(CacheError) -> [String] {
    let entries = try Self.entries(of: directory, isGoneEmpty: !hadFiles.load(ordering: .relaxed))
    hadFiles.store(!entries.isEmpty, ordering: .relaxed)
    return Self.records(kind, among: entries)
  }

  /// Counts one more record, and makes room for it by removing the oldest eighth where the kind allows it. Throws `full`,
  /// `unlisted` or `unwritable`.
  private func claimRoom(_ kind: CacheKind) throws(CacheError) {
    let limit = countLimit(kind)
    let hasRoom = try counts.withLock { counts throws(CacheError) in
      let count = if let known = counts[kind] { known } else { try self.files(kind).count }
      counts[kind] = count + 1
      return count < limit
    }
    guard !hasRoom else { return }
    counts.withLock { $0[kind] = nil }
    let files = try self.files(kind)
    guard files.count >= limit else { return }
    if kind.dropsDamaged, try makeRoom(kind, age: { _ in nil }) > 0, try self.files(kind).count < limit { return }
    guard kind.makesRoom else { throw .full(kind) }
    let aged = files.map { (file: $0, written: modified($0)) }.sorted { $0.written < $1.written }
    for entry in aged.prefix(files.count - limit + max(1, limit / 8)) { try remove(kind, file: entry.file) }
  }

  private func modified(_ file: String) -> Date {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path(file))
    return attributes?[.modificationDate] as? Date ?? .distantPast
  }
}
