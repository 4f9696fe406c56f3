internal import CLinux

/// A pipe lent to one direction of a relay while bulk data flows through it. Empty whenever it lies in the pool.
@safe
final class Pipe {
  let reader: Int32
  let writer: Int32
  /// Bytes that fit, if every slot is full.
  let capacity: Int
  /// Bytes inside. Kept by the borrower.
  var fill = 0

  init?(size: Int32) {
    var reader: Int32 = -1
    var writer: Int32 = -1
    let capacity = unsafe pinfold_pipe(&reader, &writer, size)
    guard capacity > 0 else { return nil }
    self.reader = reader
    self.writer = writer
    self.capacity = capacity
  }

  deinit {
    pinfold_close(reader)
    pinfold_close(writer)
  }
}

/// A loop's pipes for splice(2). A direction takes one when bulk data is there and gives it back drained.
final class PipePool {
  /// Pipes lent out and kept together, per loop: 64 of them serve 64 directions at once; the next ones copy.
  static let maximalCount = 64
  /// Pipes kept for the next bulk transfer when nobody needs them; each holds two descriptors.
  static let maximalIdleCount = 16
  /// Bytes asked for: 128 slots, of which one socket buffer fragment of up to 32 KiB takes one.
  static let pipeSize: Int32 = 524_288

  private var idle: [Pipe] = []
  private var lent = 0

  /// A pipe, or `nil` if the bound is reached or the system gives none.
  func take() -> Pipe? {
    if let pipe = idle.popLast() {
      lent += 1
      return pipe
    }
    guard lent < Self.maximalCount, let pipe = Pipe(size: Self.pipeSize) else { return nil }
    lent += 1
    return pipe
  }

  /// Takes a pipe back. One that still holds bytes is closed with them.
  func give(_ pipe: Pipe) {
    lent -= 1
    if pipe.fill == 0, idle.count < Self.maximalIdleCount { idle.append(pipe) }
  }

  /// Closes what nobody uses, when descriptors are short.
  func trim() {
    idle = []
  }
}
