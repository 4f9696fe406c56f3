import Foundation
import Testing

extension Operation {
  /// The key of the cache, kept elsewhere (`cache_key_file`).
  @Suite struct CacheKeyTests {
    private typealias Place = CacheFaultTests.Place

    private static let others = "https://www.pinfold.test/"

    private func makeFolder(_ workspace: Workspace) throws {
      try FileManager.default.createDirectory(atPath: workspace.path("keys"), withIntermediateDirectories: false)
    }

    private func mode(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    /// Every file of the state directory with what is in it.
    private func contents(_ workspace: Workspace, _ folder: String = "state") throws -> [String: Data] {
      let root = workspace.path(folder)
      let names = try FileManager.default.subpathsOfDirectory(atPath: root)
      return Dictionary(
        uniqueKeysWithValues: names.compactMap { name in
          FileManager.default.contents(atPath: "\(root)/\(name)").map { (name, $0) }
        })
    }

    /// Guards: a key that is read from another place than it was written to, a cache that is taken under any key, and a
    /// state directory that gives hosts away though its key is elsewhere.
    @Test("The cache is read again with its key, and with another one nothing of it is used") func restarts() throws {
      let place = try Place()
      let settings = place.settings.with { $0.cacheKeyFile = "keys/cache.key" }
      let first = try Pinfold(settings, prepare: makeFolder)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      #expect(try Client.curl.fetch(Self.others, proxy: first.port).succeeded)
      try first.end()
      #expect(try mode(first.workspace.path("keys/cache.key")) == 0o600)
      let kept = try contents(first.workspace)
      #expect(kept["cache.key"] == nil && kept.keys.count { $0.hasPrefix("cache/pins-") } == 2, "\(kept.keys)")
      let digest = place.certificates.ecdsa.pin.dropFirst("sha256/".count)
      for (name, bytes) in kept {
        for word in ["pinfold.test", "www.", String(digest), Certificates.hex(place.certificates.ecdsa.pin)] {
          #expect(!name.contains(word) && bytes.range(of: Data(word.utf8)) == nil, "\(name): \(word)")
        }
      }

      place.service.stop()
      let second = try Pinfold(settings, in: first.workspace)
      #expect(try Client.curl.fetch(proxy: second.port).succeeded)
      #expect(try Client.curl.fetch(Self.others, proxy: second.port).succeeded)
      #expect(second.cacheWarnings.isEmpty, "\(second.cacheWarnings)")
      try second.end()

      let third = try Pinfold(settings.with { $0.cacheKeyFile = "keys/other.key" }, in: first.workspace)
      #expect(try !Client.curl.fetch(proxy: third.port).succeeded)
      #expect(try third.reasons() == ["pins_unavailable"])
      try third.end()
      #expect(!third.child.errors.contains("www.pinfold.test") && !third.child.output.contains("www.pinfold.test"))
      #expect(
        try contents(first.workspace).filter { $0.key.hasPrefix("cache/pins-") }
          == kept.filter { $0.key.hasPrefix("cache/pins-") })

      // The old key opens it still.
      let fourth = try Pinfold(settings, in: first.workspace)
      #expect(try Client.curl.fetch(proxy: fourth.port).succeeded)
    }

    struct Row: CustomTestStringConvertible {
      let testDescription: String
      var path = "keys/cache.key"
      /// What lies there, and its mode; `nil`: nothing.
      var text: String?
      var mode = 0o600
      /// The warning that follows the path; `nil`: none.
      var warning: String?
      /// Whether there is a cache.
      var isCached = true
    }

    private static let key = "pinfold-sealing-key v1\n\(Data(repeating: 7, count: 32).base64EncodedString())\n"
    private static let uncached = "; nothing is cached, and nothing that was is used"

    static let rows = [
      Row(testDescription: "no file: one is made"),
      Row(testDescription: "a key: it is used", text: key),
      Row(
        testDescription: "a key that everybody may read", text: key, mode: 0o644,
        warning: ": others may use this secret (mode 0644); chmod 600 it"),
      Row(
        testDescription: "a key that the group may read", text: key, mode: 0o640,
        warning: ": others may use this secret (mode 0640); chmod 600 it"),
      Row(
        testDescription: "no folder for it", path: "nowhere/cache.key",
        warning: ": open: No such file or directory\(uncached)", isCached: false),
      Row(
        testDescription: "a folder in its place", path: "keys", warning: ": not a regular file\(uncached)",
        isCached: false),
      Row(
        testDescription: "another secret", text: "pinfold-ed25519-secret-key v1\nAAAA\n",
        warning: ": not a key file of this kind: it has two lines, "
          + "\"pinfold-sealing-key v1\" and 44 characters of base64\(uncached)", isCached: false),
    ]

    @Test("A key file that is missing, open to others or none is told, and tunnels go on", arguments: rows)
    func faults(_ row: Row) throws {
      let place = try Place()
      let pinfold = try Pinfold(place.settings.with { $0.cacheKeyFile = row.path }) { workspace in
        try makeFolder(workspace)
        guard let text = row.text else { return }
        try workspace.write(row.path, text)
        try FileManager.default.setAttributes([.posixPermissions: row.mode], ofItemAtPath: workspace.path(row.path))
      }
      let path = pinfold.workspace.path(row.path)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      try pinfold.end()
      #expect(pinfold.cacheWarnings == (row.warning.map { [path + $0] } ?? []))
      let cached = try contents(pinfold.workspace).keys.filter { $0.hasPrefix("cache/pins-") }
      #expect(cached.count == (row.isCached ? 1 : 0))
      if let text = row.text {
        #expect(pinfold.workspace.read(row.path) == text)
        #expect(try mode(path) == row.mode)
      } else if row.isCached {
        #expect(try mode(path) == 0o600)
        #expect(pinfold.workspace.read(row.path).hasPrefix("pinfold-sealing-key v1\n"))
      }
    }
  }
}
