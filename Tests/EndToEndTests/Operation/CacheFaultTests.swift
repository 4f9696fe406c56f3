import Foundation
import Testing

extension Operation {
  /// A cache that cannot be kept, or is damaged, costs a warning, and the record in question; never a tunnel that could go
  /// on.
  @Suite struct CacheFaultTests {
    struct Place {
      let certificates: Certificates
      let server: Servers.Running
      let signer: RecordSigner
      let service: PinService
      let settings: Settings

      init() throws {
        certificates = try Certificates.shared()
        server = try Servers.nginx(certificates.ecdsa)
        signer = try RecordSigner()
        let (signer, certificates) = (signer, certificates)
        service = try PinService { host in
          (try? signer.record(certificates.ecdsa.pin, domain: host)).map { .body($0) } ?? .status(500)
        }
        let port = server.port
        settings = try Settings.supplied(service.section(signer), port: port).with {
          $0.resolve["www.pinfold.test:443"] = port
        }
      }
    }

    @Test(
      "Tunnels go on without a cache",
      arguments: ["a file where the records should be", "a damaged key", "a folder where the key should be"])
    func faults(_ fault: String) throws {
      let place = try Place()
      let pinfold = try Pinfold(place.settings) { workspace in
        try FileManager.default.createDirectory(atPath: workspace.path("state"), withIntermediateDirectories: true)
        switch fault {
        case "a file where the records should be": try workspace.write("state/cache", "no folder")
        case "a damaged key": try workspace.write("state/cache.key", "pinfold-sealing-key v1\nno key\n")
        default:
          try FileManager.default.createDirectory(
            atPath: workspace.path("state/cache.key"), withIntermediateDirectories: true)
        }
      }
      for _ in 0..<3 { #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded) }
      #expect(place.service.asked.count == 1)
      try Wait.untilTrue("a warning") { !pinfold.cacheWarnings.isEmpty }
    }

    @Test("A record with a flipped byte is refused, and the other is not") func flipped() throws {
      let place = try Place()
      let first = try Pinfold(place.settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      try Wait.untilTrue("the first record") { first.workspace.hasCacheFiles(1) }
      let files = try FileManager.default.contentsOfDirectory(atPath: first.workspace.path("state/cache"))
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: first.port).succeeded)
      try first.end()
      #expect(first.workspace.hasCacheFiles(2))
      let victim = URL(filePath: first.workspace.path("state/cache/\(files[0])"))
      var bytes = try Data(contentsOf: victim)
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: victim)
      place.service.stop()
      let pinfold = try Pinfold(place.settings, in: first.workspace)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons(2) == ["pins_unavailable", "pin_match"])
      #expect(pinfold.cacheWarnings.contains { $0.contains("altered") })
    }

    /// Guards: a file name or an unsealed byte that tells a thief which hosts this machine talks to.
    @Test("The state directory shows no host and no pin; without its key nothing of it is used") func stolen() throws {
      let place = try Place()
      let settings = place.settings
      let first = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: first.port).succeeded)
      try first.end()
      let state = first.workspace.path("state")
      let digest = place.certificates.ecdsa.pin.dropFirst("sha256/".count)
      let hex = (Data(base64Encoded: String(digest)) ?? Data()).map { String(format: "%02x", $0) }.joined()
      for file in try FileManager.default.subpathsOfDirectory(atPath: state) {
        let bytes = (try? Data(contentsOf: URL(filePath: "\(state)/\(file)"))) ?? Data()
        let text = file + String(decoding: bytes, as: UTF8.self)
        for word in ["pinfold.test", "api.", "www.", String(digest), hex] {
          #expect(!text.contains(word), "\(file): \(word)")
        }
      }
      try FileManager.default.removeItem(atPath: state + "/cache.key")
      place.service.stop()
      let pinfold = try Pinfold(settings, in: first.workspace)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pins_unavailable"])
    }

    @Test("kill -9 loses no record that was written before") func killed() throws {
      let place = try Place()
      let first = try Pinfold(place.settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      try Wait.untilTrue("the record") { first.workspace.hasCacheFiles(1) }
      first.child.signal(SIGKILL)
      try first.child.wait()
      place.service.stop()
      let pinfold = try Pinfold(place.settings, in: first.workspace)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }
  }
}

extension Pinfold {
  /// What the log says of the cache.
  var cacheWarnings: [String] {
    log.filter { $0["message"] as? String == "cache" }.compactMap { $0["warning"] as? String }
  }
}

extension Workspace {
  fileprivate func hasCacheFiles(_ count: Int) -> Bool {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: path("state/cache"))) ?? []
    return files.count == count && files.allSatisfy { !$0.hasSuffix(".new") }
  }
}
