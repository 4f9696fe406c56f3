import Foundation
import Testing

@testable import pinfold_fuzz

/// Every input that was ever worth keeping, fed to its target again. `make fuzz` looks for new ones.
@Suite struct CorpusTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/Fuzz").path()

  @Test("No kept input breaks a promise or traps", arguments: FuzzTarget.allCases)
  func replay(_ target: FuzzTarget) throws {
    let count = try Corpus.replay("\(Self.folder)/\(target.rawValue)")
    #expect(count >= 3, "there is nothing to replay")
  }

  @Test("No first input made of a capture does either") func seeds() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try Seeds(handshakes: Self.folder + "/../Handshakes").write(to: folder.path())
    for target in FuzzTarget.allCases {
      let count = try Corpus.replay("\(folder.path())/\(target.rawValue)")
      #expect(count >= (target.isOfHandshakes ? 40 : 3), "\(target.rawValue)")
    }
  }

  @Test("The corpora stay small enough to be committed") func size() throws {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: Self.folder)
    let sizes = paths.compactMap { path in
      try? FileManager.default.attributesOfItem(atPath: "\(Self.folder)/\(path)")[.size] as? Int
    }
    #expect(sizes.reduce(0, +) <= 300 * 1024)
  }

  @Test("A folder of no target is an error") func unknownFolder() {
    #expect(throws: Corpus.UnknownTarget.self) { try Corpus.replay("\(Self.folder)/nothing") }
  }
}

extension FuzzTarget {
  /// Whether its first inputs are made of captures.
  fileprivate var isOfHandshakes: Bool {
    switch self {
    case .clientHello, .serverFlight, .encryptedFlight, .keyLog: true
    case .connectHead, .policy, .envelope, .pinRecord: false
    }
  }
}
