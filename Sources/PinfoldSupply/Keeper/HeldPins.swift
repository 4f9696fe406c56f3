package import PinfoldModel
package import PinfoldPolicy

/// A record at hand: verified, with the bytes it came in.
package final class HeldPins: Sendable {
  /// As verified when it came, or when it was loaded.
  package let record: PinRecord
  /// Its pins, ready to be matched.
  package let pins: PinSet
  /// When the bytes arrived, never after the time it was last verified.
  package let received: Timestamp
  let bytes: [UInt8]
  /// What it was verified under.
  let trust: PinService.Trust

  /// A record that was just verified.
  package init(_ record: PinRecord, bytes: [UInt8], received: Timestamp, trust: PinService.Trust) {
    self.record = record
    pins = PinSet(record.pins)
    self.bytes = bytes
    self.received = received
    self.trust = trust
  }

  /// Whether its pins may be used at this time.
  package func isFresh(at now: Timestamp) -> Bool { now < record.freshUntil }
}

/// The clocks of one moment: the time of day decides lifetimes, the steady clock how often something is tried.
package struct PinMoment: Sendable {
  /// The time of day, never before a time that has passed for certain.
  package var wall: Timestamp
  /// Nanoseconds of a clock that never goes back.
  package var steady: UInt64

  /// Two readings taken together.
  package init(wall: Timestamp, steady: UInt64) {
    self.wall = wall
    self.steady = steady
  }
}
