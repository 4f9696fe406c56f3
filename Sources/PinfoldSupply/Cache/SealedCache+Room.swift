extension SealedCache {
  /// Removes records of a kind that nobody misses: all that do not open under this key, and an eighth of the kind's limit,
  /// at most, of those that `age` gives a number, the lowest first. What is there and cannot be read stays. Returns how
  /// many went. Throws `unlisted` or `unwritable`. Reads every record of the kind, one at a time.
  @discardableResult
  package func makeRoom(_ kind: CacheKind, age: (Record) -> Int64?) throws(CacheError) -> Int {
    var gone: [String] = []
    var spare: [(file: String, age: Int64)] = []
    for file in try files(kind) {
      do throws(CacheError) {
        guard let record = try read(kind, file: file) else { continue }
        let name = String(decoding: record.name, as: UTF8.self)
        if let age = age(Record(name: name, contents: record.contents)) { spare.append((file, age)) }
      } catch {
        if case .broken = error { gone.append(file) }
      }
    }
    gone += spare.sorted { $0.age < $1.age }.prefix(max(1, countLimit(kind) / 8)).map(\.file)
    for file in gone { try remove(kind, file: file) }
    return gone.count
  }
}
