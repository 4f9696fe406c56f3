import FoundationEssentials
import Glibc
import PinfoldLoop
import Testing

@testable import PinfoldServer

@Suite struct StateLockTests {
  private struct Place: ~Copyable {
    let path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  @Test func `a directory has one holder at a time, and is free when he goes`() throws {
    let place = Place()
    var first: StateLock? = try StateLock(place.path, patience: .zero)
    #expect(first?.warning == nil)
    let error = #expect(throws: StartError.self) { try StateLock(place.path, patience: .milliseconds(1)) }
    #expect(error?.text.contains("\(place.path) is in use by another Pinfold") == true)
    first = nil
    #expect(try StateLock(place.path, patience: .zero).warning == nil)
  }

  @Test func `who is about to leave is waited for`() throws {
    let place = Place()
    let loop = try EventLoop()
    let thread = try LoopThread(name: "leaving", loop: loop)
    defer { thread.stop() }
    var first: StateLock? = try StateLock(place.path, patience: .zero)
    loop.execute { [first] in
      usleep(300_000)
      withExtendedLifetime(first) {}
    }
    first = nil
    #expect(try StateLock(place.path, patience: .seconds(60)).warning == nil)
  }

  @Test(arguments: ["missing", "folder", "link"])
  func `where no lock can be had it goes on with a warning`(kind: String) throws {
    let place = Place()
    let path = kind == "missing" ? place.path + "/missing" : place.path
    if kind != "missing" {
      try FileManager.default.createDirectory(atPath: place.path, withIntermediateDirectories: false)
    }
    switch kind {
    case "folder":
      try FileManager.default.createDirectory(atPath: path + "/run.lock", withIntermediateDirectories: false)
    case "link": #expect(unsafe symlink("\(path)/elsewhere", path + "/run.lock") == 0)
    default: break
    }
    let lock = try StateLock(path, patience: .zero)
    #expect(lock.warning?.contains("nothing keeps another Pinfold from using it") == true)
    #expect(!FileManager.default.fileExists(atPath: path + "/elsewhere"))
  }
}
