import Testing

@testable import PinfoldPolicy

@Suite struct SampleWindowTests {
  @Test func `samples fall out when they are older than the window`() {
    var window = SampleWindow(seconds: 300, at: 0)
    window.add(failure: true, at: 0)
    window.add(failure: false, at: 1)
    #expect((window.samples, window.failures, window.ratio) == (2, 1, 0.5))
    let before = window.advanced(to: 299_999)
    #expect(before.samples == 2)
    let after = window.advanced(to: 300_000)
    #expect((after.samples, after.failures, after.ratio) == (0, 0, 0))
  }

  @Test("The window slides by sixtieths, whatever its length", arguments: [1, 7, 60, 300, 86_400])
  func slides(seconds: Int) {
    var window = SampleWindow(seconds: seconds, at: 0)
    let step = max(1, Int64(seconds) * 1000 / 60 + (seconds * 1000 % 60 == 0 ? 0 : 1))
    for bucket in 0..<600 {
      window.add(failure: bucket.isMultiple(of: 2), at: Int64(bucket) * step)
      let expected = min(bucket + 1, 60)
      #expect(window.samples == expected)
      #expect(abs(window.failures * 2 - expected) <= 1)
    }
  }

  @Test func `against a plain list of samples it is never wrong by more than one step`() {
    var generator = SystemRandomNumberGenerator()
    var window = SampleWindow(seconds: 60, at: 0)
    var list: [(moment: Int64, failure: Bool)] = []
    var moment: Int64 = 0
    for _ in 0..<5000 {
      moment += Int64.random(in: 0...400, using: &generator)
      let failure = Bool.random()
      window.add(failure: failure, at: moment)
      list.append((moment, failure))
      let recent = list.filter { $0.moment > moment - 59_000 }
      let all = list.filter { $0.moment > moment - 60_000 }
      #expect(window.samples >= recent.count && window.samples <= all.count)
      #expect(window.failures >= recent.count(where: \.failure) && window.failures <= all.count(where: \.failure))
    }
  }

  @Test func `a clock that goes back or far ahead harms nothing`() {
    var window = SampleWindow(seconds: 60, at: 1_000_000)
    window.add(failure: true, at: 1_000_000)
    window.add(failure: true, at: 0)
    window.add(failure: true, at: .min)
    #expect(window.samples == 3)
    window.add(failure: true, at: .max)
    #expect((window.samples, window.failures) == (1, 1))
    window.add(failure: false, at: .max)
    #expect(window.samples == 2)
  }

  @Test("The longest window can be made") func longest() {
    var window = SampleWindow(seconds: .max, at: .max)
    window.add(failure: true, at: .max)
    #expect(window.reaches(percent: 100))
    #expect(!window.reaches(percent: 100.1))
  }
}

@Suite struct FadingTableTests {
  @Test func `what was used lately stays, and the number is bounded`() {
    var table = FadingTable<Int, Int>(limit: 100)
    for number in 0..<1000 {
      table.update(number, fresh: 0) { $0 += 1 }
      table.update(0, fresh: 0) { $0 += 1 }
      #expect(table.count <= 100)
    }
    #expect(table.value(for: 0) == 1001)
    for number in 960..<1000 { #expect(table.value(for: number) == 1) }
    #expect(table.value(for: 1) == nil)
  }

  @Test func `entries can be looked at, removed one by one, by condition, and all`() {
    var table = FadingTable<Int, Int>(limit: 10)
    for number in 0..<8 { table.update(number, fresh: number * number) { _ in } }
    #expect(Set(table.entries.map(\.value)) == [0, 1, 4, 9, 16, 25, 36, 49])
    table.remove(0)
    table.remove(7)
    #expect(table.value(for: 0) == nil && table.value(for: 7) == nil)
    table.removeAll { $0.isMultiple(of: 2) }
    #expect(table.entries.map(\.key).sorted() == [1, 3, 5])
    table.removeAll()
    #expect(table.count == 0)
  }

  @Test("Even the smallest table holds something", arguments: [-1, 0, 1, 2]) func smallest(limit: Int) {
    var table = FadingTable<Int, Int>(limit: limit)
    for number in 0..<10 {
      table.update(number, fresh: number) { _ in }
      #expect(table.value(for: number) == number)
      #expect(table.count <= 2)
    }
  }
}
