// swift-tools-version: 6.2
import PackageDescription

/// One list for every target, so that no file is compiled by softer rules than its neighbours.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// The byte cursor of PinfoldWire stores a `Span`, which is still behind this flag in Swift 6.3.
let lifetimes: [SwiftSetting] = settings + [.enableExperimentalFeature("Lifetimes")]

func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(
  _ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = [], exclude: [String] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies, exclude: exclude, resources: resources,
    swiftSettings: settings)
}

func system(_ name: String, pkgConfig: String? = nil, apt package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let package = Package(
  name: "pinfold",
  targets: [
    // C libraries: module maps over the system's headers. Each is imported by one Swift target only.
    system("CLibevent", pkgConfig: "libevent", apt: "libevent-dev"),
    .target(name: "CLinux"),
    system("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev"),
    system("CCompression", apt: "zlib1g-dev libbrotli-dev libzstd-dev"),
    system("CSodium", pkgConfig: "libsodium", apt: "libsodium-dev"),
    system("CDomain", pkgConfig: "libpsl", apt: "libpsl-dev libidn2-dev"),

    // Pure layers: no C, no Foundation, no clock.
    library("PinfoldModel"),
    .target(name: "PinfoldWire", dependencies: ["PinfoldModel"], swiftSettings: lifetimes),
    library("PinfoldPolicy", ["PinfoldModel"]),
    library("PinfoldTelemetry", ["PinfoldModel"]),

    // One library of the system each.
    library("PinfoldConfig", ["PinfoldModel", "PinfoldPolicy", "CDomain"]),
    library("PinfoldCrypto", ["PinfoldModel", "CSodium"]),
    library("PinfoldTLS", ["PinfoldModel", "PinfoldWire", "COpenSSL", "CCompression"]),
    library("PinfoldLoop", ["PinfoldModel", "CLibevent", "CLinux"]),

    // What strings them together.
    library(
      "PinfoldSupply", ["PinfoldModel", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldLoop"]),
    library(
      "PinfoldServer",
      [
        "PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldTelemetry", "PinfoldConfig", "PinfoldCrypto",
        "PinfoldTLS", "PinfoldLoop", "PinfoldSupply",
      ]),

    // The command line: a library, so that its tests need no process, and the executable that calls it.
    library(
      "PinfoldCommand",
      [
        "PinfoldModel", "PinfoldPolicy", "PinfoldTelemetry", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS",
        "PinfoldLoop", "PinfoldSupply", "PinfoldServer",
      ]),
    .executableTarget(name: "pinfold", dependencies: ["PinfoldCommand"], swiftSettings: settings),
    .executableTarget(
      name: "pinfold-bench",
      dependencies: [
        "PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldSupply",
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "pinfold-fuzz",
      dependencies: [
        "PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldSupply",
      ],
      swiftSettings: settings),

    tests("PinfoldModelTests", ["PinfoldModel"]),
    tests("PinfoldWireTests", ["PinfoldModel", "PinfoldWire"]),
    tests("PinfoldPolicyTests", ["PinfoldModel", "PinfoldPolicy"]),
    tests("PinfoldTelemetryTests", ["PinfoldModel", "PinfoldTelemetry"]),
    tests("PinfoldConfigTests", ["PinfoldModel", "PinfoldPolicy", "PinfoldConfig"], exclude: ["Fixtures"]),
    tests("PinfoldCryptoTests", ["PinfoldModel", "PinfoldCrypto"]),
    tests("PinfoldTLSTests", ["PinfoldModel", "PinfoldWire", "PinfoldTLS"]),
    tests("DifferentialTests", ["PinfoldModel", "PinfoldWire", "PinfoldTLS", "COpenSSL"]),
    tests("FuzzTests", ["PinfoldModel", "PinfoldCrypto", "PinfoldSupply", "pinfold-fuzz"]),
    tests("PinfoldTLS13Tests", ["PinfoldModel", "PinfoldWire", "PinfoldTLS"]),
    tests("PinfoldLoopTests", ["PinfoldModel", "PinfoldLoop"]),
    tests("HTTPClientTests", ["PinfoldModel", "PinfoldLoop", "PinfoldTLS"], exclude: ["Servers"]),
    tests(
      "PinfoldSupplyTests",
      ["PinfoldModel", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldLoop", "PinfoldSupply"]),
    tests(
      "PinfoldServerTests",
      [
        "PinfoldModel", "PinfoldWire", "PinfoldPolicy", "PinfoldTelemetry", "PinfoldConfig", "PinfoldCrypto",
        "PinfoldLoop", "PinfoldTLS", "PinfoldSupply", "PinfoldServer",
      ]),
    tests("ProjectTests", ["PinfoldModel"]),
    tests(
      "PinfoldCommandTests",
      [
        "PinfoldModel", "PinfoldPolicy", "PinfoldConfig", "PinfoldCrypto", "PinfoldTLS", "PinfoldLoop",
        "PinfoldSupply", "PinfoldCommand",
      ],
      exclude: ["Help"]),
    tests(
      "EndToEndTests", ["pinfold"], exclude: ["Alerts", "Clients", "Flows/Programs", "Papers/Programs", "Servers"]),
  ]
)
