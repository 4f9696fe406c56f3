import Foundation
import Synchronization
import Testing

@testable import PinfoldLoop

/// Would catch a key log that is lost, read by others, or put into somebody's file.
@Suite struct NamedPipeTests {
  private static func path() -> String { NSTemporaryDirectory() + "pinfold-pipe-\(UUID().uuidString)" }

  /// What `write` put into the pipe, read on a loop of its own until `count` bytes have come.
  private static func read(_ path: String, count: Int, write: () throws -> Void) throws -> [UInt8] {
    let loop = try EventLoop()
    let received = Mutex<[UInt8]>([])
    let pipe = try NamedPipe(path: path, mode: 0o622, loop: loop) { bytes in
      let all = received.withLock { all in
        all += bytes
        return all.count
      }
      if all >= count { loop.stop() }
    }
    defer { withExtendedLifetime(pipe) {} }
    try write()
    let timer = LoopTimer(loop: loop, after: .seconds(10)) { loop.stop() }
    loop.run()
    timer.cancel()
    return received.withLock { $0 }
  }

  private static func append(_ text: String, to path: String) throws {
    let handle = try #require(FileHandle(forWritingAtPath: path))
    try handle.write(contentsOf: Data(text.utf8))
    try handle.close()
  }

  @Test("What several writers write one after the other arrives whole and in order") func writers() throws {
    let path = Self.path()
    defer { unsafe unlink(path) }
    let read = try Self.read(path, count: 12) {
      try Self.append("first ", to: path)
      try Self.append("second", to: path)
    }
    #expect(String(decoding: read, as: UTF8.self) == "first second")
  }

  @Test("It is made with its mode, whatever the umask, and stays") func mode() throws {
    let path = Self.path()
    defer { unsafe unlink(path) }
    _ = try Self.read(path, count: 1) { try Self.append("x", to: path) }
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o622)
  }

  @Test("A plain file or a directory at the path is an error and is left alone", arguments: [false, true])
  func somethingElse(isDirectory: Bool) throws {
    let path = Self.path()
    if isDirectory {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    } else {
      try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
    }
    defer { try? FileManager.default.removeItem(atPath: path) }
    let loop = try EventLoop()
    #expect(throws: IOError.self) { try NamedPipe(path: path, mode: 0o622, loop: loop) { _ in } }
    if !isDirectory { #expect(FileManager.default.contents(atPath: path) == Data("precious".utf8)) }
  }

  @Test("A link is not followed") func link() throws {
    let path = Self.path()
    let target = Self.path()
    #expect(unsafe mkfifo(target, 0o600) == 0)
    #expect(unsafe symlink(target, path) == 0)
    defer {
      unsafe unlink(path)
      unsafe unlink(target)
    }
    let loop = try EventLoop()
    #expect(throws: IOError.self) { try NamedPipe(path: path, mode: 0o622, loop: loop) { _ in } }
  }
}
