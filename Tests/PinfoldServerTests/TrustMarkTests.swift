import Foundation
import Testing

@testable import PinfoldServer

extension TrustMark {
  /// The mark of no authorities at all, for tests that do not care.
  static let tested = TrustMark(file: "", directories: [])
  /// Another one.
  static let other = TrustMark(file: "/", directories: [])
}

/// Would catch a change of the authorities that nobody notices, and sessions that end though nothing changed.
@Suite struct TrustMarkTests {
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-trust-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder.appending(path: "certs"), withIntermediateDirectories: true)
    try write("a", to: "bundle.pem")
    try write("a", to: "certs/a.pem")
    try write("b", to: "certs/b.pem")
    try link("a.pem", "certs/0.0")
  }

  private func write(_ text: String, to name: String) throws {
    try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
  }

  private func link(_ target: String, _ name: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: folder.appending(path: name).path, withDestinationPath: target)
  }

  private func remove(_ name: String) throws { try FileManager.default.removeItem(at: folder.appending(path: name)) }

  private var mark: TrustMark {
    TrustMark(file: folder.appending(path: "bundle.pem").path, directories: [folder.appending(path: "certs").path])
  }

  struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let make: @Sendable (TrustMarkTests) throws -> Void

    init(_ name: String, _ make: @escaping @Sendable (TrustMarkTests) throws -> Void) {
      (testDescription, self.make) = (name, make)
    }
  }

  static let changes = [
    Change("another file") { try $0.write("b", to: "bundle.pem") },
    Change("no file") { try $0.remove("bundle.pem") },
    Change("one more certificate") { try $0.write("c", to: "certs/c.pem") },
    Change("one fewer") { try $0.remove("certs/b.pem") },
    Change("another certificate of the same name and size") { try $0.write("x", to: "certs/b.pem") },
    Change("a link that leads elsewhere") {
      try $0.remove("certs/0.0")
      try $0.link("b.pem", "certs/0.0")
    },
    Change("a link that leads nowhere") { try $0.remove("certs/a.pem") },
    Change("no directory") { try $0.remove("certs") },
  ]

  @Test(arguments: changes) func `a change makes another mark`(_ change: Change) throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let before = mark
    #expect(mark == before)
    try change.make(self)
    #expect(mark != before)
  }

  @Test func `a file and the system have different marks`() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "bundle.pem").path
    #expect(TrustMark(caFile: path) == TrustMark(caFile: path))
    #expect(TrustMark(caFile: path) != TrustMark(caFile: nil))
    #expect(TrustMark(caFile: nil) == TrustMark(caFile: nil))
  }
}
