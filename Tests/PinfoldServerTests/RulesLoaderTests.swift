import FoundationEssentials
import PinfoldModel
import Testing

@testable import PinfoldServer

/// The time that has passed for certain where the configuration names no bundle.
@Suite struct RulesLoaderTests {
  private struct Place: ~Copyable {
    let path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path
    deinit { try? FileManager.default.removeItem(atPath: path) }

    init(state: String? = nil) throws {
      try FileManager.default.createDirectory(atPath: path + "/state", withIntermediateDirectories: true)
      try put("pinfold.json5", #"{ state_dir: "state" }"#)
      if let state { try put("state/policy.state", state) }
    }

    func put(_ name: String, _ text: String) throws { try Data(text.utf8).write(to: URL(filePath: "\(path)/\(name)")) }

    var state: String? {
      (try? Data(contentsOf: URL(filePath: path + "/state/policy.state"))).map { String(decoding: $0, as: UTF8.self) }
    }

    func load() throws -> RulesLoader.Loaded {
      let loader = RulesLoader(path: path + "/pinfold.json5", environment: [:])
      return try loader.load(loader.configuration())
    }
  }

  private static let later = Timestamp(seconds: 2_000_000_000)

  @Test func `without bundles a time that has passed is kept over a restart, and never falls`() throws {
    let place = try Place()
    var first = try place.load()
    #expect(first.rules.clockFloor.time == Timestamp(seconds: 0) && place.state == nil)
    #expect(first.noteTime(Self.later).isEmpty)
    #expect(first.rules.now >= Self.later)
    var second = try place.load()
    #expect(second.rules.clockFloor.time == Self.later && second.clockWarnings.isEmpty)
    #expect(second.noteTime(Timestamp(seconds: 1_900_000_000)).isEmpty)
    #expect(second.rules.clockFloor.time == Self.later)
    #expect(place.state == "pinfold-state v1\nhighest_version 0\nclock_floor \(Self.later.text)\n")
  }

  @Test func `what a policy left in the state stays there`() throws {
    let rotation = "rotation \(String(repeating: "a", count: 64)) \(String(repeating: "b", count: 64))\n"
    let place = try Place(
      state: "pinfold-state v1\nhighest_version 7\nclock_floor 2026-11-21T00:00:00Z\n\(rotation)")
    var loaded = try place.load()
    #expect(loaded.rules.clockFloor.time.text == "2026-11-21T00:00:00Z")
    #expect(loaded.noteTime(Self.later).isEmpty)
    #expect(place.state == "pinfold-state v1\nhighest_version 7\nclock_floor \(Self.later.text)\n\(rotation)")
  }

  @Test func `a damaged state is told and left alone`() throws {
    let place = try Place(state: "oops")
    var loaded = try place.load()
    #expect(loaded.clockWarnings.count == 1 && loaded.clockWarnings[0].contains("damaged"))
    #expect(loaded.noteTime(Self.later).count == 1)
    #expect(loaded.rules.clockFloor.time == Self.later, "for this process it has passed all the same")
    #expect(place.state == "oops")
  }
}
