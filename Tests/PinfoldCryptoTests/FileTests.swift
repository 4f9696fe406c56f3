import FoundationEssentials
import Glibc
import PinfoldModel
import Testing

@testable import PinfoldCrypto

/// A directory of one test's own, gone with it.
final class Scratch {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }
  func put(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
    #expect(
      FileManager.default.createFile(
        atPath: file(name), contents: Data(text.utf8), attributes: [.posixPermissions: mode]))
    return file(name)
  }
  func mode(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: file(name))[.posixPermissions] as? Int
  }
  var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() } }
}

@Suite struct PrivateFileTests {
  @Test func `a file is read whole up to the limit and not one byte beyond`() throws {
    let scratch = try Scratch()
    let path = try scratch.put("data", "0123456789")
    #expect(try PrivateFile.read(path, limit: 10) == .init(bytes: Array("0123456789".utf8), mode: 0o600))
    #expect(throws: FileError.tooLarge(path: path, limit: 9)) { try PrivateFile.read(path, limit: 9) }
  }

  @Test(arguments: [Int.max, Int.max - 1]) func `a limit beyond all files is no overflow`(limit: Int) throws {
    let scratch = try Scratch()
    #expect(try PrivateFile.read(scratch.put("data", "0123456789"), limit: limit).bytes.count == 10)
  }

  @Test(arguments: [-1, 0]) func `a limit of nothing lets an empty file through at most`(limit: Int) throws {
    let scratch = try Scratch()
    let (empty, full) = (try scratch.put("empty", ""), try scratch.put("full", "0"))
    #expect(throws: FileError.tooLarge(path: full, limit: limit)) { try PrivateFile.read(full, limit: limit) }
    if limit == 0 { #expect(try PrivateFile.read(empty, limit: limit).bytes == []) }
  }

  @Test func `a file is removed, and one that is not there is removed already`() throws {
    let scratch = try Scratch()
    let path = try scratch.put("data", "0")
    try PrivateFile.remove(path)
    try PrivateFile.remove(path)
    try PrivateFile.remove(path + "/below")
    #expect(try scratch.names == [])
    #expect(throws: FileError.self) { try PrivateFile.remove(scratch.path) }
  }

  @Test func `a file is replaced over a temporary one of the caller's choice`() throws {
    let scratch = try Scratch()
    let path = try scratch.put("data", "0")
    try PrivateFile.replace(path, bytes: [0x31], temporary: scratch.file("mine"))
    #expect(try PrivateFile.read(path, limit: 9).bytes == [0x31])
    #expect(try scratch.names == ["data"])
    #expect(throws: FileError.self) {
      try PrivateFile.replace(path, bytes: [0x32], temporary: scratch.file("none/mine"))
    }
    #expect(try PrivateFile.read(path, limit: 9).bytes == [0x31])
  }

  @Test func `a long file is read whole`() throws {
    let scratch = try Scratch()
    let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    try PrivateFile.create(scratch.file("data"), bytes: bytes)
    #expect(try PrivateFile.read(scratch.file("data"), limit: 1_000_000).bytes == bytes)
  }

  @Test func `files of the kernel, which claim no size, are read and bounded too`() throws {
    #expect(try !PrivateFile.read("/proc/self/status", limit: 65536).bytes.isEmpty)
    #expect(throws: FileError.tooLarge(path: "/proc/self/status", limit: 16)) {
      try PrivateFile.read("/proc/self/status", limit: 16)
    }
  }

  @Test func `what is missing or no file says so`() throws {
    let scratch = try Scratch()
    do throws(FileError) {
      _ = try PrivateFile.read(scratch.file("none"), limit: 1)
      Issue.record("a missing file was read")
    } catch {
      #expect(error.isMissing)
      #expect(error.description == "\(scratch.path)/none: open: No such file or directory")
    }
    #expect(throws: FileError.notRegular(path: scratch.path)) { try PrivateFile.read(scratch.path, limit: 1) }
    #expect(throws: FileError.notRegular(path: "/dev/zero")) { try PrivateFile.read("/dev/zero", limit: 1) }
  }

  @Test func `a pipe in place of a file is refused without waiting for a writer`() throws {
    let scratch = try Scratch()
    #expect(unsafe mkfifo(scratch.file("pipe"), 0o600) == 0)
    #expect(throws: FileError.notRegular(path: scratch.file("pipe"))) {
      try PrivateFile.read(scratch.file("pipe"), limit: 1)
    }
  }

  @Test func `a new file is private and never replaces another`() throws {
    let scratch = try Scratch()
    try PrivateFile.create(scratch.file("new"), bytes: [1])
    #expect(try scratch.mode("new") == 0o600)
    do throws(FileError) {
      try PrivateFile.create(scratch.file("new"), bytes: [2])
      Issue.record("an existing file was written")
    } catch { #expect(error.isOccupied) }
    #expect(try PrivateFile.read(scratch.file("new"), limit: 9).bytes == [1])
  }

  @Test func `replacing leaves one private file, whatever a crash left behind`() throws {
    let scratch = try Scratch()
    let path = try scratch.put("state", "old", mode: 0o644)
    _ = try scratch.put("state.new", "half a fi", mode: 0o644)
    try PrivateFile.replace(path, bytes: Array("new".utf8))
    #expect(try PrivateFile.read(path, limit: 9) == .init(bytes: Array("new".utf8), mode: 0o600))
    #expect(try scratch.names == ["state"])
  }

  @Test func `a file that cannot be written names the directory's fault`() throws {
    let scratch = try Scratch()
    do throws(FileError) {
      try PrivateFile.replace(scratch.file("none/state"), bytes: [1])
      Issue.record("written into a missing directory")
    } catch { #expect(error.isMissing) }
  }

  @Test func `a directory is made private once`() throws {
    let scratch = try Scratch()
    try PrivateFile.makeDirectory(scratch.file("state"))
    try PrivateFile.makeDirectory(scratch.file("state"))
    #expect(try scratch.mode("state") == 0o700)
  }
}

@Suite struct KeyFileTests {
  @Test func `a signing key comes back from its file as it was`() throws {
    let scratch = try Scratch()
    let key = try Ed25519SecretKey()
    try key.write(to: scratch.file("key"))
    var warnings: [String] = []
    let back = try Ed25519SecretKey(path: scratch.file("key"), warnings: &warnings)
    #expect(back.publicKey == key.publicKey)
    #expect(back.sign([1]) == key.sign([1]))
    #expect(warnings.isEmpty)
    #expect(try scratch.mode("key") == 0o600)
  }

  @Test func `the file is two lines as documented`() throws {
    let scratch = try Scratch()
    let seed = [UInt8](repeating: 0, count: 32)
    try Ed25519SecretKey(seed: SecretBytes(copying: seed)).write(to: scratch.file("key"))
    let text = String(decoding: try PrivateFile.read(scratch.file("key"), limit: 999).bytes, as: UTF8.self)
    #expect(text == "pinfold-ed25519-secret-key v1\n\(Base64.encode(seed))\n")
  }

  @Test func `an existing key is never overwritten`() throws {
    let scratch = try Scratch()
    let path = try scratch.put("key", "precious")
    #expect(throws: CryptoError.self) { try Ed25519SecretKey().write(to: path) }
    #expect(try PrivateFile.read(path, limit: 99).bytes == Array("precious".utf8))
  }

  @Test(arguments: [0o640, 0o604, 0o620, 0o644]) func `a secret that others may use is warned about`(mode: Int) throws {
    let scratch = try Scratch()
    let path = try scratch.put(
      "key", "pinfold-ed25519-secret-key v1\n\(String(repeating: "A", count: 43))=\n", mode: mode)
    var warnings: [String] = []
    _ = try Ed25519SecretKey(path: path, warnings: &warnings)
    #expect(warnings == ["\(path): others may use this secret (mode 0\(String(mode, radix: 8))); chmod 600 it"])
  }

  @Test(arguments: [
    "", "pinfold-ed25519-secret-key v1\n", "pinfold-ed25519-secret-key v2\n\(String(repeating: "A", count: 43))=\n",
    "pinfold-ed25519-secret-key v1\n\(String(repeating: "A", count: 42))B=\n",
    "pinfold-ed25519-secret-key v1\n\(String(repeating: "A", count: 43))!\n",
    "pinfold-ed25519-secret-key v1\n\(String(repeating: "A", count: 44))\n",
    "pinfold-ed25519-secret-key v1\n\(String(repeating: "A", count: 43))= ",
    "pinfold-ed25519-secret-key v1\n\(String(repeating: "A", count: 43))=\n\n",
    "pinfold-sealing-key v1\n\(String(repeating: "A", count: 43))=\n",
    "pinfold-ed25519-secret-key v1\r\n\(String(repeating: "A", count: 43))=\n", String(repeating: "A", count: 4096),
  ]) func `anything else than the format is no key`(text: String) throws {
    let scratch = try Scratch()
    let path = try scratch.put("key", text)
    var warnings: [String] = []
    do throws(CryptoError) {
      _ = try Ed25519SecretKey(path: path, warnings: &warnings)
      Issue.record("read as a key")
    } catch {
      #expect(error.description.hasPrefix("\(path): not a key file of this kind"))
    }
  }
}
