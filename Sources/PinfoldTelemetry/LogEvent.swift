/// How much a log line matters. The raw value is the word of the line, and of `log.level`.
package enum Severity: String, CaseIterable, Comparable, Sendable {
  case debug, info, warning, error

  private var rank: Int {
    switch self {
    case .debug: 0
    case .info: 1
    case .warning: 2
    case .error: 3
    }
  }

  package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

/// The two forms of a log line.
package enum LineFormat: String, CaseIterable, Sendable {
  /// One JSON object a line.
  case json
  /// Time, level, message, then `key=value`: for people at a terminal.
  case text
}

/// A value of a log line. Whoever wrote it, it is escaped when rendered.
package enum LogValue: Equatable, Sendable {
  case text(String)
  /// Bytes that need be no text, such as a request head that could not be read.
  case bytes([UInt8])
  case integer(Int64)
  case unsigned(UInt64)
  /// A finite number; others are rendered as text.
  case decimal(Double)
  case flag(Bool)
}

/// One line of the log: a constant message, and what varies as key-value pairs.
package struct LogEvent: Sendable {
  /// One pair. Keys are constants of the source, so that no input can name one.
  package struct Field: Sendable {
    /// The name, and what varies.
    package var key: StaticString
    package var value: LogValue

    /// A pair of a constant name and a value.
    package init(_ key: StaticString, _ value: LogValue) {
      self.key = key
      self.value = value
    }
  }

  /// How much it matters, what happened, and the pairs in the order in which they are shown.
  package var level: Severity
  package var message: StaticString
  package var fields: [Field]

  /// A line with these pairs.
  package init(_ level: Severity, _ message: StaticString, _ fields: [Field] = []) {
    self.level = level
    self.message = message
    self.fields = fields
  }

  /// The line with its newline: ASCII only, exactly one newline, at its end.
  package func render(_ format: LineFormat, at time: LogTime) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(512)
    switch format {
    case .json:
      LogText.append("{\"time\":\"\(time.text)\",\"level\":\"\(level.rawValue)\",\"message\":", to: &output)
      LogText.appendJSON(message.description, to: &output)
      for field in fields {
        output.append(0x2c)
        LogText.appendJSON(field.key.description, to: &output)
        output.append(0x3a)
        field.value.appendJSON(to: &output)
      }
      output.append(0x7d)
    case .text:
      LogText.append("\(time.text) \(level.rawValue) ", to: &output)
      LogText.append(LogText.spelled(Array(message.description.utf8)), to: &output)
      for field in fields {
        output.append(0x20)
        LogText.appendPlain(field.key.description, to: &output)
        output.append(0x3d)
        field.value.appendPlain(to: &output)
      }
    }
    output.append(0x0a)
    return output
  }
}

extension LogValue {
  func appendJSON(to output: inout [UInt8]) {
    switch self {
    case .text(let text): LogText.appendJSON(text, to: &output)
    case .bytes(let bytes): LogText.appendJSON(LogText.spelled(bytes), to: &output)
    case .decimal(let number) where !number.isFinite: LogText.appendJSON(number.description, to: &output)
    default: appendNumber(to: &output)
    }
  }

  fileprivate func appendPlain(to output: inout [UInt8]) {
    switch self {
    case .text(let text): LogText.appendPlain(text, to: &output)
    case .bytes(let bytes): LogText.appendPlain(LogText.spelled(bytes), to: &output)
    default: appendNumber(to: &output)
    }
  }

  private func appendNumber(to output: inout [UInt8]) {
    switch self {
    case .text, .bytes: break
    case .integer(let number): LogText.append(String(number), to: &output)
    case .unsigned(let number): LogText.append(String(number), to: &output)
    case .decimal(let number): LogText.append(number.description, to: &output)
    case .flag(let flag): LogText.append(flag ? "true" : "false", to: &output)
    }
  }
}
