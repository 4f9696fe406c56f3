import Synchronization

/// Names one tunnel in the log: `k7q2-3-1f`. The process's random tag, the worker, and the worker's running number,
/// in digits that cannot be mistaken for each other. Unique within a process; two processes share a tag once in a
/// million.
package struct RequestID: Hashable, Sendable, CustomStringConvertible {
  private static let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)

  /// 20 bits.
  let process: UInt32
  let worker: UInt16
  let number: UInt64

  /// The written form: lower-case letters, digits and two hyphens, at most 22 characters.
  package var description: String {
    var text: [UInt8] = []
    for shift in [15, 10, 5, 0] as [UInt32] { text.append(Self.digits[Int(process >> shift & 31)]) }
    text.append(0x2d)
    Self.append(UInt64(worker), to: &text)
    text.append(0x2d)
    Self.append(number, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  private static func append(_ number: UInt64, to text: inout [UInt8]) {
    var shift: UInt64 = 60
    while shift > 0, number >> shift == 0 { shift -= 5 }
    while true {
      text.append(digits[Int(number >> shift & 31)])
      if shift == 0 { return }
      shift -= 5
    }
  }
}

/// Makes the request ids of one worker. Safe from any thread, without a lock.
package final class RequestIDSource: Sendable {
  private let process: UInt32
  private let worker: UInt16
  private let next = Atomic<UInt64>(1)

  /// `processTag` is drawn at random once per process (its lowest 20 bits count); `worker` differs between sources.
  package init(processTag: UInt32, worker: UInt16) {
    process = processTag & 0xfffff
    self.worker = worker
  }

  /// An id that this source never made before.
  package func make() -> RequestID {
    let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
    return RequestID(process: process, worker: worker, number: number)
  }
}
