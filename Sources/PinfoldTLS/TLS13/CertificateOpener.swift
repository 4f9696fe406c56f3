import CCompression
import PinfoldWire

/// Opens a CompressedCertificate (RFC 8879), each algorithm through its own library.
package enum CertificateOpener {
  /// The registered algorithms.
  package enum Algorithm: UInt16, CaseIterable, Sendable {
    case zlib = 1
    case brotli = 2
    case zstd = 3
  }

  /// Bytes a Certificate message may have once opened, however many are announced.
  package static var limit: Int { WireLimits.uncompressedCertificate }

  /// The body of the Certificate message inside; nil for an unknown algorithm, a length over the limit, compressed
  /// bytes that are broken, too short or too long, or content that is not exactly as long as announced.
  ///
  /// No more memory than the announced length is filled, and a few times that and half a megabyte for the decoder,
  /// whatever the input would expand to.
  package static func open(_ compressed: ArraySlice<UInt8>, algorithm: UInt16, announced: Int) -> [UInt8]? {
    guard let algorithm = Algorithm(rawValue: algorithm), announced > 0, announced <= limit, !compressed.isEmpty
    else { return nil }
    var isWhole = false
    let output = unsafe compressed.withUnsafeBufferPointer { input in
      unsafe [UInt8](unsafeUninitializedCapacity: announced) { output, count in
        guard let from = input.baseAddress, let into = output.baseAddress else { return }
        switch algorithm {
        case .zlib: isWhole = unsafe pinfold_open_zlib(from, input.count, into, announced) == 1
        case .brotli: isWhole = unsafe pinfold_open_brotli(from, input.count, into, announced) == 1
        case .zstd: isWhole = unsafe pinfold_open_zstd(from, input.count, into, announced) == 1
        }
        count = isWhole ? announced : 0
      }
    }
    return isWhole ? output : nil
  }
}
