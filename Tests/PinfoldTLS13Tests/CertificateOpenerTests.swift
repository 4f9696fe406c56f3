import Glibc
import PinfoldModel
import Testing

@testable import PinfoldTLS

/// RFC 8879 by all three libraries: exactly the announced length, or nothing.
@Suite("opening compressed certificates") struct CertificateOpenerTests {
  /// The text "certificate " forty times, as Python's zlib, Node's brotli and the zstd library compress it.
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let algorithm: CertificateOpener.Algorithm
    let compressed: String
  }

  static let text = [UInt8](String(repeating: "certificate ", count: 40).utf8)
  static let rows = [
    Row(
      testDescription: "zlib", algorithm: .zlib, compressed: "78da4b4e2d2ac94ccb4c4e2c4955481e650f3b36008a62b979"),
    Row(testDescription: "brotli", algorithm: .brotli, compressed: "1bdf01f825000a18c26a016f4c7504"),
    Row(
      testDescription: "zstd", algorithm: .zstd,
      compressed: "28b52ffd60e0009d0000606365727469666963617465200100d1574b12"),
  ]

  private func open(_ row: Row, _ bytes: [UInt8]? = nil, announced: Int = text.count) throws -> [UInt8]? {
    let compressed = try #require(Hex.decode(row.compressed))
    return CertificateOpener.open((bytes ?? compressed)[...], algorithm: row.algorithm.rawValue, announced: announced)
  }

  @Test("what was compressed comes out", arguments: rows) func opens(_ row: Row) throws {
    #expect(try open(row) == Self.text)
  }

  @Test("an announced length that is off by one, or absurd, is refused", arguments: rows) func lengths(_ row: Row)
    throws
  {
    for announced in [0, -1, 1, 479, 481, 128 * 1024, 128 * 1024 + 1, 1 << 24, .max] {
      #expect(try open(row, announced: announced) == nil)
    }
  }

  @Test("every prefix, and a byte behind the end, is refused", arguments: rows) func cuts(_ row: Row) throws {
    let bytes = try #require(Hex.decode(row.compressed))
    for count in 0..<bytes.count { #expect(try open(row, Array(bytes[..<count])) == nil) }
    #expect(try open(row, bytes + [0]) == nil)
    #expect(try open(row, bytes + bytes) == nil)
  }

  @Test("other algorithms are refused", arguments: [0, 4, 0xffff] as [UInt16]) func unknown(_ algorithm: UInt16) {
    #expect(CertificateOpener.open(Self.text[...], algorithm: algorithm, announced: Self.text.count) == nil)
  }

  @Test("one library's bytes are nothing to another") func mixedUp() throws {
    for row in Self.rows {
      for other in Self.rows where other.algorithm != row.algorithm {
        let bytes = try #require(Hex.decode(other.compressed))
        #expect(try open(row, bytes) == nil)
      }
    }
  }

  @Test("a stream that expands without end fills no more than was announced") func bomb() throws {
    // zlib's own form of 300,000 zeros: 313 bytes, nearly all of them zero.
    let bytes = try #require(Hex.decode("78daedc1010d000000c2a0f74f6d0f0714")) + [UInt8](repeating: 0, count: 295)
    for announced in [64, 100_000, 131_072] {
      #expect(CertificateOpener.open(bytes[...], algorithm: 1, announced: announced) == nil)
    }
  }

  /// Guards: a worker that stands still, and 16 MiB, for each of the 14 bytes of a hostile upstream.
  @Test("a brotli stream that says it is large takes no memory for it") func brotliWindow() async throws {
    await #expect(processExitsWith: .success) {
      // 16 MiB less 1 KiB of one byte, in a window of 16 MiB.
      let bytes = try #require(Hex.decode("9ffffbfff82582e2b1402077fe1f"))
      var before = rusage()
      #expect(unsafe getrusage(0, &before) == 0)
      for announced in [1, 1000, 131_072] {
        #expect(CertificateOpener.open(bytes[...], algorithm: 2, announced: announced) == nil)
      }
      var after = rusage()
      #expect(unsafe getrusage(0, &after) == 0)
      // Kilobytes of resident memory at the peak.
      #expect(after.ru_maxrss - before.ru_maxrss < 4096)
    }
  }
}
