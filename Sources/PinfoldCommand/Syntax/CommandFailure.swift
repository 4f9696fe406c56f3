/// What a process leaves behind (sysexits.h for 64 and 78).
package enum ExitCode: Int32, Sendable {
  /// Done, allowed, in order.
  case good = 0
  /// Refused, blocked, or not done.
  case failed = 1
  /// The command line cannot be read.
  case usage = 64
  /// The configuration cannot be used.
  case config = 78
}

/// Why a command stopped: one message for standard error and the exit status.
struct CommandFailure: Error, Equatable {
  let status: ExitCode
  /// One line or several, without the leading `pinfold: `.
  let message: String

  init(_ status: ExitCode, _ message: String) {
    self.status = status
    self.message = message
  }

  /// A command line that cannot be read, with the command that shows how it would be right.
  static func usage(_ message: String, help: String) -> CommandFailure {
    CommandFailure(.usage, "\(message) (see \(quoted(help)))")
  }
}

extension CommandFailure {
  /// Does `work`; an error of its layer becomes a failure with its own words behind `context`.
  static func failing<Value, Failure: Error & CustomStringConvertible>(
    _ context: String = "", _ work: () throws(Failure) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(Failure) {
      return try work()
    } catch {
      throw CommandFailure(.failed, context.isEmpty ? error.description : "\(context): \(error.description)")
    }
  }
}

/// The text in double quotes, control characters and quotes escaped, so that a hostile file name cannot steer the
/// terminal it is shown on.
func quoted(_ text: some StringProtocol) -> String { "\"\(escaped(text))\"" }

/// The text with everything escaped that is not printable.
func escaped(_ text: some StringProtocol) -> String {
  var result = ""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"", "\\": result += "\\\(scalar)"
    case _ where isControl(scalar): result += "\\u{\(String(scalar.value, radix: 16))}"
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}

/// C0, C1, line and paragraph separators, and what turns the writing direction.
private func isControl(_ scalar: Unicode.Scalar) -> Bool {
  switch scalar.properties.generalCategory {
  case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: true
  default: false
  }
}
