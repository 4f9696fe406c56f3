import COpenSSL
import Glibc

/// Why OpenSSL could not do what it was asked. No error of this kind ever leads to an allow.
package enum TLSError: Error, Equatable, Sendable {
  /// Bytes that cannot be read as what they claim to be: a certificate, a key, a PEM file.
  case unreadable(String)
  /// Input beyond a limit that is named in the text.
  case tooLarge(String)
  /// A call that failed for another reason: memory, configuration, a file.
  case failed(call: String, detail: String)

  /// Takes everything from this thread's error queue (ERR_get_error(3)) into a value that names the failed call.
  static func drained(_ call: String) -> TLSError {
    .failed(call: call, detail: ErrorQueue.drain())
  }
}

extension TLSError: CustomStringConvertible {
  /// One line for logs and terminals; names the call and what OpenSSL says of it.
  package var description: String {
    switch self {
    case .unreadable(let what): what
    case .tooLarge(let what): what
    case .failed(let call, let detail): detail.isEmpty ? "\(call) failed" : "\(call): \(detail)"
    }
  }
}

/// This thread's OpenSSL error queue: cleared before a call, drained after one that failed, so that no call is
/// blamed for another's error.
enum ErrorQueue {
  /// ERR_clear_error(3), which goes through all sixteen places even when the queue is empty, as it mostly is.
  static func clear() { if ERR_peek_error() != 0 { ERR_clear_error() } }

  /// All reasons in the queue, oldest first, joined by `; `. The texts are OpenSSL's own constants or those of the
  /// operating system: nothing of a peer's bytes.
  static func drain() -> String {
    var reasons: [String] = []
    while true {
      let code = pinfold_next_error()
      guard code != 0 else { break }
      if pinfold_error_is_system(code) != 0 {
        // OpenSSL only says the same again behind it.
        clear()
        reasons.append(systemText(Int32(truncatingIfNeeded: code & 0x7fff_ffff)))
        break
      }
      if let text = unsafe ERR_reason_error_string(code) {
        reasons.append(unsafe String(cString: text))
      } else {
        reasons.append("error \(code & 0x7fff_ffff)")
      }
    }
    return reasons.joined(separator: "; ")
  }

  /// strerror_r(3); Swift's Glibc module has its POSIX form.
  private static func systemText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    guard unsafe strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
