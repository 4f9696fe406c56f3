/// Finds what somebody probably meant: a mistyped command, option or configuration key.
package enum Nearest {
  /// Words longer than this are not compared: the table grows with the product of both lengths.
  private static let maximumLength = 64

  /// The candidate with the smallest distance to `word`, the first of equals; `nil` when none is close enough to be
  /// a plausible slip (at most a third of the word's length, and at least one, at most three edits).
  package static func match(_ word: String, among candidates: some Sequence<String>) -> String? {
    let typed = Array(word.lowercased().utf8)
    guard !typed.isEmpty, typed.count <= maximumLength else { return nil }
    var best: (text: String, distance: Int)?
    for candidate in candidates {
      let known = Array(candidate.lowercased().utf8)
      guard known.count <= maximumLength else { continue }
      let distance = distance(typed, known)
      guard distance <= min(3, max(1, typed.count / 3)) else { continue }
      if best.map({ distance < $0.distance }) ?? true { best = (candidate, distance) }
    }
    return best?.text
  }

  /// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours count one each.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
      var current = [row]
      for column in 1...right.count {
        let substitution = last[column - 1] + (left[row - 1] == right[column - 1] ? 0 : 1)
        var cost = min(substitution, last[column] + 1, current[column - 1] + 1)
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          cost = min(cost, beforeLast[column - 2] + 1)
        }
        current.append(cost)
      }
      beforeLast = last
      last = current
    }
    return last[right.count]
  }
}
