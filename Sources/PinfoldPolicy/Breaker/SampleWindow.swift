/// Successes and failures of the last while, in buckets that fall out one by one: a sliding window whose cost depends
/// neither on its length nor on how much happens in it. About 500 bytes.
///
/// Moments are milliseconds of a clock that never goes back. One that is older than the newest counts as the newest.
struct SampleWindow: Sendable {
  /// A window of 300 seconds slides in steps of five.
  private static let bucketCount = 60

  private var successes: [60 of UInt32] = .init(repeating: 0)
  private var failuresByBucket: [60 of UInt32] = .init(repeating: 0)
  /// Milliseconds of a bucket.
  private let width: Int64
  /// Number of the newest bucket since the clock's zero.
  private var newest: Int64
  /// Samples in the window, and how many of them are failures.
  private(set) var samples = 0
  private(set) var failures = 0

  /// An empty window that reaches `seconds` back from each moment.
  init(seconds: Int, at moment: Int64) {
    width = max(1, (Int64(clamping: seconds) &* 1000 &+ 59) / 60)
    newest = max(0, moment) / width
  }

  /// Counts one sample.
  mutating func add(failure: Bool, at moment: Int64) {
    advance(to: moment)
    let place = Int(newest % Int64(Self.bucketCount))
    if failure {
      guard failuresByBucket[place] < .max else { return }
      failuresByBucket[place] += 1
      failures += 1
    } else {
      guard successes[place] < .max else { return }
      successes[place] += 1
    }
    samples += 1
  }

  /// Drops what has become too old.
  mutating func advance(to moment: Int64) {
    let bucket = max(0, moment) / width
    guard bucket > newest else { return }
    let steps = min(bucket - newest, Int64(Self.bucketCount))
    for step in 1...steps {
      let place = Int((newest % Int64(Self.bucketCount) + step) % Int64(Self.bucketCount))
      samples -= Int(successes[place]) + Int(failuresByBucket[place])
      failures -= Int(failuresByBucket[place])
      successes[place] = 0
      failuresByBucket[place] = 0
    }
    newest = bucket
  }

  /// The same window as it is at a later moment.
  func advanced(to moment: Int64) -> SampleWindow {
    var copy = self
    copy.advance(to: moment)
    return copy
  }

  /// Failures among the samples, 0–1; 0 without samples.
  var ratio: Double { samples == 0 ? 0 : Double(failures) / Double(samples) }

  /// Whether failures reach this share of the samples. No failure reaches no share, not even zero percent.
  func reaches(percent: Double) -> Bool {
    failures > 0 && Double(failures) * 100 >= percent * Double(samples)
  }
}
