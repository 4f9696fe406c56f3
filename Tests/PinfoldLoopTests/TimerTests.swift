import Synchronization
import Testing

@testable import PinfoldLoop

@Suite struct TimerTests {
  @Test(
    "A sleep is never short and not much too long, even on a busy machine",
    arguments: [0, 1, 5, 20, 100, 300])
  func sleepIsAccurate(milliseconds: Int) async throws {
    try await onLoop { loop in
      let start = Deadline.now
      await loop.sleep(for: .milliseconds(milliseconds))
      let took = Deadline.now.duration(since: start)
      #expect(took >= .milliseconds(milliseconds) - .microseconds(50))
      #expect(took < .milliseconds(milliseconds + 500))
    }
  }

  @Test("A pause is never short, and far shorter than the wheel's tick where it is asked to be")
  func pauses() async throws {
    try await onLoop { loop in
      var shortest = Duration.seconds(1)
      for microseconds in [0, 1, 50, 200, 200, 200, 200, 1000, 3000] {
        let start = Deadline.now
        await loop.pause(for: .microseconds(microseconds))
        let took = Deadline.now.duration(since: start)
        #expect(took >= .microseconds(microseconds))
        #expect(took < .milliseconds(500))
        if microseconds == 200 { shortest = min(shortest, took) }
      }
      // Of four one is left alone even by a busy machine; a tick of the wheel takes 4.2 ms.
      #expect(shortest < .milliseconds(3))
    }
  }

  @Test func `pauses that overlap end in the order of their time`() async throws {
    try await onLoop { loop in
      final class Order: Sendable { let ended = Mutex<[Int]>([]) }
      var ended: [Int] = []
      // They begin one after another, on a busy machine not within half a millisecond, but not each time.
      for _ in 0..<20 where ended != [500, 1000, 1500, 2000, 3000] {
        let order = Order()
        let tasks = [3000, 500, 1500, 1000, 2000].map { microseconds in
          loop.spawn {
            await loop.pause(for: .microseconds(microseconds))
            order.ended.withLock { $0.append(microseconds) }
          }
        }
        for task in tasks { await task.value }
        ended = order.ended.withLock { $0 }
      }
      #expect(ended == [500, 1000, 1500, 2000, 3000])
    }
  }

  @Test func `a repeating timer goes on until it is cancelled, also from inside its own call`() async throws {
    try await onLoop { loop in
      final class Count { var value = 0 }
      let count = Count()
      var timer: LoopTimer?
      timer = LoopTimer(loop: loop, after: .milliseconds(2), every: .milliseconds(2)) {
        count.value += 1
        if count.value == 3 { timer?.cancel() }
      }
      await loop.sleep(for: .milliseconds(120))
      #expect(count.value == 3)
      timer = nil
    }
  }

  @Test func `a timer that is let go does not fire`() async throws {
    try await onLoop { loop in
      final class Count { var value = 0 }
      let count = Count()
      var timer: LoopTimer? = LoopTimer(loop: loop, after: .milliseconds(5)) { count.value += 1 }
      _ = timer
      timer = nil
      await loop.sleep(for: .milliseconds(40))
      #expect(count.value == 0)
    }
  }

  /// The wheel against a list of deadlines, on a clock of the test's own.
  @Test("The wheel fires each entry once, not early and at most two ticks late", arguments: 1...12)
  func wheelKeepsTime(seed: UInt64) {
    let tick: UInt64 = 1 << TimerWheel.tickShift
    var noise = Noise(seed: seed)
    var now: UInt64 = noise.next() >> 20
    let wheel = TimerWheel(now: now)
    let alarm = Alarm()
    wheel.arm = { alarm.next = $0 }
    let probes = (0..<300).map { _ in Probe(wheel: wheel, alarm: alarm) }
    func reschedule(_ probe: Probe) {
      let magnitude = noise.next() % 36
      let due = now + noise.next() % (1 << (magnitude + 4))
      probe.expected = due
      probe.schedule(due: due)
    }
    for probe in probes { reschedule(probe) }
    for _ in 0..<4000 {
      guard alarm.next != .max else { break }
      // Now and then somebody gives up, or waits anew while the old link is still in place.
      let chosen = probes[Int(noise.next() % UInt64(probes.count))]
      switch noise.next() % 8 {
      case 0:
        chosen.due = .max
        chosen.expected = .max
      case 1: reschedule(chosen)
      default: break
      }
      now = max(now, alarm.next) + noise.next() % tick
      alarm.next = .max
      alarm.now = now
      wheel.advance(now: now)
    }
    for probe in probes { #expect(probe.faults.isEmpty) }
    #expect(probes.contains { $0.fired > 0 })
    #expect(probes.allSatisfy { $0.expected == .max || $0.expected > now })
  }
}

/// The clock and the driver of the wheel under test.
private final class Alarm {
  var now: UInt64 = 0
  var next: UInt64 = .max
}

private final class Probe: TimerEntry {
  private let alarm: Alarm
  var expected: UInt64 = .max
  var fired = 0
  var faults: [String] = []

  init(wheel: TimerWheel, alarm: Alarm) {
    self.alarm = alarm
    super.init(wheel: wheel)
  }

  override func timerFired() {
    let now = alarm.now
    if expected == .max { faults.append("fired although nothing was due") }
    if now < expected { faults.append("fired \(expected - now) ns early") }
    // The clock itself jumps by up to one tick past the alarm.
    if expected != .max, now > expected, now - expected > 3 << TimerWheel.tickShift {
      faults.append("fired \(now - expected) ns late")
    }
    fired += 1
    expected = .max
  }
}
