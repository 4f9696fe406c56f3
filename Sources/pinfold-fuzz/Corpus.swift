import FoundationEssentials

/// Inputs in a folder named after their target, a file each.
enum Corpus {
  /// No target has the folder's name.
  struct UnknownTarget: Error { let folder: String }

  /// Feeds every file to the target and answers how many there were. `begin` is called before each, so that a trap can
  /// be told from its output; a promise that breaks is thrown with the file's name.
  static func replay(_ folder: String, begin: (String, Int) -> Void = { _, _ in }) throws -> Int {
    let name = folder.split(separator: "/").last.map(String.init) ?? ""
    guard let target = FuzzTarget(rawValue: name) else { throw UnknownTarget(folder: folder) }
    let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    for file in files {
      let bytes = try read("\(folder)/\(file)")
      begin("\(folder)/\(file)", bytes.count)
      do throws(BrokenPromise) { try target.run(bytes) } catch {
        throw BrokenPromise("\(folder)/\(file): \(error.description)")
      }
    }
    return files.count
  }

  static func read(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(filePath: path)))
  }
}
