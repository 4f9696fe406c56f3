import Glibc
import Testing

@testable import PinfoldCommand

/// What `check` says of a sealed cache that a start could not use.
@Suite struct CacheWarningsTests {
  let place: PolicyFolder

  init() throws {
    place = try PolicyFolder()
    try place.sign()
  }

  private func warnings(_ more: String) throws -> [String] {
    let tool = Tool("check", "-c", try place.configure(more))
    #expect(tool.status == .good)
    return tool.output.filter { $0.hasPrefix("warning: ") && $0.contains("cache") }
  }

  @Test func `a key that is made at the start is nothing to warn of`() throws {
    #expect(try warnings("") == [])
    #expect(try warnings(#"cache_key_file: "cache.key""#) == [])
    #expect(!place.scratch.names.contains("cache.key"))
  }

  @Test func `a key that cannot be read, or is none, is warned of`() throws {
    for text in ["", "pinfold-ed25519-secret-key v1\n"] {
      try FileAccess.replace(place.scratch["cache.key"], Array(text.utf8), mode: 0o600)
      let found = try warnings(#"cache_key_file: "cache.key""#)
      #expect(found.count == 1 && found[0].contains("the sealed cache cannot be used: \(place.scratch["cache.key"])"))
    }
    unsafe unlink(place.scratch["cache.key"])
    #expect(unsafe mkfifo(place.scratch["cache.key"], 0o600) == 0)
    #expect(try warnings(#"cache_key_file: "cache.key""#).first?.contains("not a regular file") == true)
  }

  @Test func `a key for which there is no folder is warned of`() throws {
    let found = try warnings(#"cache_key_file: "nowhere/cache.key""#)
    #expect(found.count == 1 && found[0].contains("its folder has to be there"), "\(found)")
  }

  @Test func `a key that others may use is warned of`() throws {
    let path = try place.configure("")
    #expect(unsafe mkdir(place.scratch["state"], 0o700) == 0)
    defer {
      unsafe unlink(place.scratch["state/cache.key"])
      unsafe rmdir(place.scratch["state"])
    }
    let secret = String(repeating: "A", count: 43) + "="
    try FileAccess.create(
      place.scratch["state/cache.key"], Array("pinfold-sealing-key v1\n\(secret)\n".utf8), mode: 0o644)
    let tool = Tool("check", "-c", path)
    #expect(tool.output.contains { $0.hasPrefix("warning: ") && $0.contains("others may use this secret") })
  }
}
