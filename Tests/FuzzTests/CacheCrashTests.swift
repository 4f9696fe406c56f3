import Foundation
import Glibc
import PinfoldSupply
import Testing

@testable import pinfold_fuzz

/// Writers of the sealed cache that end in the middle, or find no room: in processes of their own.
@Suite struct CacheCrashTests {
  /// What a writer had said when it ended.
  private struct Said {
    /// The last number kept, by name.
    var kept: [String: Int] = [:]
    var lost: [String] = []

    init(_ output: String) {
      // Only a line that ends was said.
      for line in output.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
        let words = line.split(separator: " ")
        if words.count == 3, words[0] == "kept" { kept[String(words[1])] = Int(words[2]) }
        if words.first == "lost" { lost.append(String(line)) }
      }
    }
  }

  private static let folder = FileManager.default.temporaryDirectory

  private static let binary: String = {
    let built = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: ".build/debug")
    let beside = Bundle.main.executableURL.map { $0.resolvingSymlinksInPath().deletingLastPathComponent() }
    return [beside, built].compactMap { $0?.appending(path: "pinfold-fuzz").path }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    } ?? "pinfold-fuzz"
  }()

  /// Waits for files that are made in a directory: inotify(7).
  private final class FileWatch {
    private let descriptor: Int32

    init(_ directory: String) throws {
      descriptor = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
      let watch = unsafe inotify_add_watch(descriptor, directory, UInt32(IN_CREATE))
      try #require(descriptor >= 0 && watch >= 0)
    }

    deinit { close(descriptor) }

    /// Returns at the next file, or after ten seconds.
    func wait() {
      var events = [UInt8](repeating: 0, count: 4096)
      while unsafe read(descriptor, &events, events.count) > 0 {}
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      _ = unsafe poll(&waiting, 1, 10_000)
    }
  }

  /// Runs a writer until it ends, or kills it with SIGKILL: a time after its first line, or after the first file that it
  /// begins from there on.
  private static func run(_ arguments: [String], killAfter: Double? = nil, file: FileWatch? = nil) throws -> String {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    process.standardOutput = pipe
    try process.run()
    let reading = pipe.fileHandleForReading
    var output = Data()
    if let killAfter {
      output = reading.availableData
      file?.wait()
      Thread.sleep(forTimeInterval: killAfter)
      kill(process.processIdentifier, SIGKILL)
    }
    output += (try? reading.readToEnd()) ?? Data()
    process.waitUntilExit()
    return String(decoding: output, as: UTF8.self)
  }

  private static func setMode(_ mode: Int, _ state: String) {
    try? FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: state + "/cache")
  }

  private static func cache(_ state: String) throws -> SealedCache {
    var warnings: [String] = []
    return try SealedCache(stateDirectory: state, keyFile: nil, warnings: &warnings)
  }

  /// Every record has to be whole, and none older than the last that was said to be kept.
  private static func check(_ cache: SealedCache, _ kept: [String: Int], _ comment: String) throws {
    for name in CacheWriter.names {
      let contents = try cache.read(.pins, name)
      guard let last = kept[name] else { continue }
      let number = CacheWriter.number(of: try #require(contents, "\(comment): \(name) is gone"))
      #expect(try #require(number, "\(comment): \(name) is half") >= last, "\(comment): \(name)")
    }
  }

  @Test("500 writers killed at any moment lose no record that was kept before") func killed() throws {
    let state = Self.folder.appending(path: "pinfold-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: state) }
    let cache = try Self.cache(state)
    var kept: [String: Int] = [:]
    var leftovers = 0
    var watch: FileWatch?
    for round in 0..<500 {
      let first = (kept.values.max() ?? -1) + 1
      // Every second one while it writes a file, however slow the machine is.
      let inFile = round % 2 == 1
      if inFile, watch == nil { watch = try FileWatch(state + "/cache") }
      let output = try Self.run(
        [Self.binary, "cache", state, "\(first)"], killAfter: Double.random(in: 0...(inFile ? 0.0002 : 0.004)),
        file: inFile ? watch : nil)
      let said = Said(output)
      #expect(said.lost.isEmpty)
      #expect(!said.kept.isEmpty, "the writer did not begin: \(output)")
      kept.merge(said.kept) { max($0, $1) }
      try Self.check(cache, kept, "round \(round)")
      let files = try FileManager.default.contentsOfDirectory(atPath: state + "/cache")
      leftovers += files.contains { $0.hasSuffix(".new") } ? 1 : 0
      #expect(files.count <= CacheWriter.names.count + 1, "leftovers pile up")
    }
    #expect(kept.count == CacheWriter.names.count)
    // If no kill ever fell into a write, nothing was shown.
    #expect(leftovers >= 50)
  }

  /// Guards: an interrupted test run must not leave a writer that fills the disk. SIGPIPE is ignored, as there.
  @Test("A writer that nobody listens to any more ends") func alone() throws {
    let state = Self.folder.appending(path: "pinfold-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: state) }
    let script = "trap '' PIPE; { timeout -s KILL 20 \"$0\" cache \"$1\" 0; echo \"$?\" > \"$1/ending\"; } | head -n 1"
    _ = try Self.run(["sh", "-c", script, Self.binary, state])
    #expect(try String(contentsOfFile: state + "/ending", encoding: .utf8) == "0\n")
  }

  /// With a file system of 200 KiB where that is permitted, else with files of 20 KiB at most.
  @Test("A full disk loses nothing that was kept, and the writer goes on") func fullDisk() throws {
    let state = Self.folder.appending(path: "pinfold-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: state) }
    let canMount = getuid() == 0 && (try? Self.run(["unshare", "-m", "true"])) != nil
    let check = "for f in \"$0\"/cache/*; do [ -e \"$f\" ] && cp \"$f\" \"$3\"; done; cp \"$0/cache.key\" \"$3\""
    let copies = state + ".out"
    defer { try? FileManager.default.removeItem(atPath: copies) }
    for folder in [state, copies] {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }
    let write = "\"$1\" cache \"$0\" 0 \"$2\""
    let script =
      canMount
      ? ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=200k none \"$0\" && \(write); \(check)"]
      : ["prlimit", "--fsize=20480", "sh", "-c", "\(write); \(check)"]
    let said = Said(try Self.run(script + [state, Self.binary, "64", copies]))
    #expect(!said.lost.isEmpty && !said.kept.isEmpty, "the disk was not full, or always")
    // What the writer left, as it lies on the small disk.
    let left = copies + "/state"
    try FileManager.default.createDirectory(atPath: left + "/cache", withIntermediateDirectories: true)
    for file in try FileManager.default.contentsOfDirectory(atPath: copies) where file != "state" {
      let target = file == "cache.key" ? left : left + "/cache"
      try FileManager.default.moveItem(atPath: "\(copies)/\(file)", toPath: "\(target)/\(file)")
    }
    try Self.check(try Self.cache(left), said.kept, "after \(said.lost.count) failures")
    #expect(try FileManager.default.contentsOfDirectory(atPath: left + "/cache").allSatisfy { !$0.hasSuffix(".new") })
  }

  @Test("A directory that may not be written to keeps what it has") func readOnly() throws {
    let state = Self.folder.appending(path: "pinfold-\(UUID().uuidString)").path
    defer {
      Self.setMode(0o700, state)
      try? FileManager.default.removeItem(atPath: state)
    }
    let cache = try Self.cache(state)
    for (number, name) in CacheWriter.names.enumerated() {
      try cache.write(.pins, name, CacheWriter.contents(number))
    }
    // Root may write everywhere: as somebody else then, who owns the files.
    let nobody = "65534"
    var command = [Self.binary, "cache", state, "100", "16"]
    if getuid() == 0 {
      _ = try Self.run(["chown", "-R", nobody, state])
      command = ["setpriv", "--reuid=\(nobody)", "--clear-groups", "--"] + command
    }
    Self.setMode(0o500, state)
    let said = Said(try Self.run(command))
    #expect(said.kept.isEmpty)
    #expect(said.lost.count == 16 && said.lost.allSatisfy { $0.contains("Permission denied") })
    try Self.check(
      cache, Dictionary(uniqueKeysWithValues: CacheWriter.names.enumerated().map { ($1, $0) }), "read-only")
  }
}
