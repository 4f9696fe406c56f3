/// A place in a text file. Lines and columns count from 1, columns in Unicode scalars.
package struct SourcePlace: Hashable, Comparable, Sendable {
  /// From 1.
  package var line: Int
  package var column: Int

  /// A place by its numbers.
  package init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  package static func < (left: Self, right: Self) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

/// One thing that is wrong with a file, said in a sentence that tells what would be right.
package struct Complaint: Hashable, Sendable {
  /// `nil` when the complaint is about the file as a whole, or about the environment.
  package var place: SourcePlace?
  /// Path of the key, `tls.tls13`; empty at the top.
  package var path: String
  package var message: String

  /// A complaint about a key.
  package init(at place: SourcePlace?, path: String, _ message: String) {
    self.place = place
    self.path = path
    self.message = message
  }

  /// `pinfold.json5:12:5: tls.tls13: …`
  package func text(file: String) -> String {
    var front = file
    if let place { front += ":\(place.line):\(place.column)" }
    return front + ": " + (path.isEmpty ? "" : path + ": ") + message
  }
}

/// Everything that is wrong with a file, in the order of the file.
package struct FileErrors: Error, Sendable {
  /// As the operator named it.
  package let file: String
  package let complaints: [Complaint]

  /// Takes the complaints as they are ordered.
  package init(file: String, _ complaints: [Complaint]) {
    self.file = file
    self.complaints = complaints
  }

  /// One line per complaint.
  package var text: String { complaints.map { $0.text(file: file) }.joined(separator: "\n") }
}
