import Synchronization

/// A row of counters that one thread adds to while another reads them: relaxed atomics, no lock, no order between
/// cells. They wrap at 2⁶⁴, which no counter of bytes reaches.
final class CounterRow: Sendable {
  /// Cells per row, enough for every reason; a test holds the two together.
  static let width = 32

  private let cells = [32 of Atomic<UInt64>] { _ in Atomic(0) }

  /// Adds to a cell; an index outside the row is ignored.
  func add(_ amount: UInt64 = 1, at index: Int) {
    guard index >= 0, index < Self.width else { return }
    cells[index].wrappingAdd(amount, ordering: .relaxed)
  }

  /// What a cell holds now; 0 outside the row.
  subscript(index: Int) -> UInt64 {
    guard index >= 0, index < Self.width else { return 0 }
    return cells[index].load(ordering: .relaxed)
  }
}
