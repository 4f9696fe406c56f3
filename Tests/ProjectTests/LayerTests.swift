import Testing

/// The layers, arrows pointing down only. Written out a second time beside Package.swift on purpose: a dependency
/// added there has to be meant here too.
@Suite struct LayerTests {
  private static let pure: Set<String> = ["PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldTelemetry"]
  private static let cModules: Set<String> = ["CLibevent", "CLinux", "COpenSSL", "CCompression", "CSodium", "CDomain"]
  private static let allowed: [String: Set<String>] = [
    "PinfoldModel": [],
    "PinfoldWire": ["PinfoldModel"],
    "PinfoldPolicy": ["PinfoldModel"],
    "PinfoldTelemetry": ["PinfoldModel", "Synchronization"],
    "PinfoldConfig": ["PinfoldModel", "PinfoldPolicy", "CDomain", "FoundationEssentials", "Glibc"],
    "PinfoldCrypto": ["PinfoldModel", "CSodium", "Synchronization", "Glibc"],
    "PinfoldTLS": ["PinfoldModel", "PinfoldWire", "COpenSSL", "CCompression", "Synchronization", "Glibc"],
    "PinfoldLoop": ["PinfoldModel", "CLibevent", "CLinux", "Synchronization", "Glibc"],
    "PinfoldSupply": [
      "PinfoldModel", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldLoop",
      "FoundationEssentials", "Synchronization", "Glibc",
    ],
    "PinfoldServer": [
      "PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldTelemetry", "PinfoldConfig", "PinfoldCrypto",
      "PinfoldTLS", "PinfoldLoop", "PinfoldSupply", "FoundationEssentials", "Synchronization", "Glibc",
    ],
    "PinfoldCommand": [
      "PinfoldModel", "PinfoldPolicy", "PinfoldTelemetry", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS",
      "PinfoldLoop", "PinfoldSupply", "PinfoldServer", "FoundationEssentials", "Synchronization", "Glibc",
    ],
    "pinfold": ["PinfoldCommand", "Glibc"],
    "pinfold-bench": [
      "PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldSupply",
      "FoundationEssentials", "Synchronization", "Glibc",
    ],
    "pinfold-fuzz": [
      "PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldSupply",
      "FoundationEssentials", "Glibc",
    ],
  ]

  @Test("Every import points down") func importsPointDown() throws {
    for file in try Project.swiftFiles(below: "Sources") {
      let allowed = try #require(Self.allowed[file.target], "\(file.path): no layer is written down for its target")
      for (index, line) in file.lines.enumerated() {
        guard let module = SwiftLine.importedModule(line) else { continue }
        #expect(allowed.contains(module), "\(file.path):\(index + 1) may not import \(module)")
      }
    }
  }

  @Test("A C module is imported by one target only") func cModulesHaveOneOwner() throws {
    var owners: [String: Set<String>] = [:]
    for file in try Project.swiftFiles(below: "Sources") {
      for line in file.lines {
        guard let module = SwiftLine.importedModule(line), Self.cModules.contains(module) else { continue }
        owners[module, default: []].insert(file.target)
      }
    }
    for (module, targets) in owners { #expect(targets.count == 1, "\(module) is imported by \(targets.sorted())") }
  }

  @Test("The table keeps C, Foundation and the clock out of the pure layers") func pureLayersStayPure() {
    let impure = Self.cModules.union(["FoundationEssentials", "Foundation", "Glibc", "Dispatch"])
    for target in Self.pure { #expect(Self.allowed[target]?.isDisjoint(with: impure) == true, "\(target)") }
    for (target, modules) in Self.allowed { #expect(!modules.contains("Foundation"), "\(target)") }
  }

  @Test("No arrow of the table makes a circle") func tableIsAcyclic() {
    // A target may be removed once everything below it has been; a circle leaves some over.
    var left = Self.allowed.mapValues { $0.filter { $0.hasPrefix("Pinfold") } }
    while let (free, _) = left.first(where: { $0.value.isEmpty }) {
      left[free] = nil
      left = left.mapValues { $0.subtracting([free]) }
    }
    #expect(left.isEmpty, "\(left.keys.sorted())")
  }

  @Test(
    "An import is read in all its spellings",
    arguments: [
      ("import Glibc", "Glibc"), ("package import PinfoldModel", "PinfoldModel"),
      ("@preconcurrency import CLibevent", "CLibevent"),
      ("import struct FoundationEssentials.Data", "FoundationEssentials"),
      ("  @testable import PinfoldWire", "PinfoldWire"), ("private import func Glibc.close", "Glibc"),
      ("// import Foundation", nil), ("let important = 1", nil),
    ])
  func spellings(line: String, module: String?) {
    #expect(SwiftLine.importedModule(line) == module)
  }
}
