/// What can be waiting for a deadline: an intrusive link of the loop's timer wheel.
///
/// A wait sets `due` and calls `schedule`; the end of a wait merely sets `due` to `.max` and leaves the link where it
/// is. The usual wait, ended long before its deadline, so costs two stores: the next one finds the link already in a
/// slot that comes no later than needed. Touched on the loop's thread only.
package class TimerEntry {
  /// Links of the slot's list. The wheel does not own its entries; each unlinks itself before it goes.
  fileprivate unowned(unsafe) var next: TimerEntry?
  fileprivate unowned(unsafe) var previous: TimerEntry?
  /// The slot the entry is linked into, -1 if none.
  fileprivate var slot = -1
  /// The tick at which the wheel looks at the entry next.
  fileprivate var tick: UInt64 = .max
  /// Nanoseconds of the monotonic clock; `.max` for none.
  final var due: UInt64 = .max
  private let wheel: TimerWheel

  init(wheel: TimerWheel) {
    self.wheel = wheel
  }

  deinit {
    if slot >= 0 { wheel.unlink(self) }
  }

  /// Asks for `timerFired` at `due` or up to two ticks later.
  final func schedule(due: UInt64) {
    self.due = due
    if due != .max { wheel.ensure(self) }
  }

  /// Called once `due` has passed, after `due` was set to `.max`.
  func timerFired() {}
}

/// A hierarchical timing wheel: five levels of 64 slots, ticks of 2^22 ns (4.2 ms), reaching 52 days.
///
/// libevent's own time-outs were the first choice; its heap costs two sifts per wait, and a tunnel makes about ten
/// waits of which none expires. One libevent timer drives the wheel.
@safe
final class TimerWheel {
  static let tickShift: UInt64 = 22
  private static let levels = 5
  private static let maximalDelta: UInt64 = (1 << 30) - 1

  private var slots: [Unmanaged<TimerEntry>?] = unsafe Array(repeating: nil, count: TimerWheel.levels * 64)
  /// A bit per slot that may hold entries.
  private var occupied = [UInt64](repeating: 0, count: TimerWheel.levels)
  /// All ticks up to and including this one have been dealt with.
  private var current: UInt64
  /// The tick the driver is set for.
  private var armed: UInt64 = .max
  /// Sets the driver: at this many nanoseconds of the monotonic clock call `advance`.
  var arm: (UInt64) -> Void = { _ in }

  init(now: UInt64) {
    current = now >> Self.tickShift
  }

  /// Makes sure the wheel looks at the entry no later than just after its deadline.
  fileprivate func ensure(_ entry: TimerEntry) {
    let tick = entry.due >> Self.tickShift + 1
    if entry.slot >= 0 {
      if entry.tick <= tick { return }
      unlink(entry)
    }
    link(entry, tick: tick)
    rearm()
  }

  private func link(_ entry: TimerEntry, tick wanted: UInt64) {
    let tick = min(max(wanted, current + 1), current + Self.maximalDelta)
    let delta = tick - current
    let level = delta < 64 ? 0 : (63 - delta.leadingZeroBitCount) / 6
    let index = Int(truncatingIfNeeded: tick >> UInt64(6 * level)) & 63
    let slot = level * 64 + index
    let head = unsafe slots[slot]?.takeUnretainedValue()
    unsafe entry.next = head
    unsafe entry.previous = nil
    unsafe head?.previous = entry
    entry.slot = slot
    entry.tick = tick
    unsafe slots[slot] = Unmanaged.passUnretained(entry)
    occupied[level] |= 1 << UInt64(index)
  }

  fileprivate func unlink(_ entry: TimerEntry) {
    let next = unsafe entry.next
    if let previous = unsafe entry.previous {
      unsafe previous.next = next
    } else {
      unsafe slots[entry.slot] = next.map { unsafe Unmanaged.passUnretained($0) }
      if next == nil { occupied[entry.slot / 64] &= ~(1 << UInt64(entry.slot % 64)) }
    }
    unsafe next?.previous = entry.previous
    unsafe entry.next = nil
    unsafe entry.previous = nil
    entry.slot = -1
    entry.tick = .max
  }

  /// Fires what is due. `now` is the monotonic clock in nanoseconds.
  func advance(now: UInt64) {
    armed = .max
    let last = now >> Self.tickShift
    while current < last {
      guard let upcoming = nextTick(), upcoming <= last else {
        current = last
        break
      }
      current = upcoming
      cascade()
      empty(Int(truncatingIfNeeded: current & 63), now: now)
    }
    rearm()
  }

  /// Moves entries of the higher levels down when their slot's time begins.
  private func cascade() {
    for level in 1..<Self.levels {
      let shift = UInt64(6 * level)
      guard current & (1 << shift - 1) == 0 else { return }
      let index = Int(truncatingIfNeeded: current >> shift) & 63
      relink(level * 64 + index)
    }
  }

  private func relink(_ slot: Int) {
    var moved = unsafe slots[slot]?.takeUnretainedValue()
    unsafe slots[slot] = nil
    occupied[slot / 64] &= ~(1 << UInt64(slot % 64))
    while let entry = moved {
      moved = unsafe entry.next
      let tick = entry.tick
      // An entry for this very tick goes where `empty` looks next.
      if tick <= current {
        placeInCurrentSlot(entry)
      } else {
        link(entry, tick: tick)
      }
    }
  }

  private func placeInCurrentSlot(_ entry: TimerEntry) {
    let slot = Int(truncatingIfNeeded: current & 63)
    let head = unsafe slots[slot]?.takeUnretainedValue()
    unsafe entry.next = head
    unsafe entry.previous = nil
    unsafe head?.previous = entry
    entry.slot = slot
    unsafe slots[slot] = Unmanaged.passUnretained(entry)
    occupied[0] |= 1 << UInt64(slot)
  }

  /// Takes entries one by one from the front, since what fires may link and unlink others.
  private func empty(_ slot: Int, now: UInt64) {
    while let entry = unsafe slots[slot]?.takeUnretainedValue() {
      unlink(entry)
      if entry.due <= now {
        entry.due = .max
        entry.timerFired()
      } else if entry.due != .max {
        link(entry, tick: entry.due >> Self.tickShift + 1)
      }
    }
  }

  /// The next tick at which a slot has to be looked at, `nil` if the wheel is empty.
  private func nextTick() -> UInt64? {
    var best: UInt64?
    for level in 0..<Self.levels where occupied[level] != 0 {
      let shift = UInt64(6 * level)
      let position = current >> shift
      // Turn the bits so that bit 0 stands for the slot after the current one.
      let turn = (position + 1) & 63
      let bits = occupied[level]
      let turned = turn == 0 ? bits : bits >> turn | bits << (64 - turn)
      let tick = (position + 1 + UInt64(turned.trailingZeroBitCount)) << shift
      best = min(best ?? tick, tick)
    }
    return best
  }

  private func rearm() {
    guard let tick = nextTick(), tick < armed else { return }
    armed = tick
    arm(tick << Self.tickShift)
  }
}
