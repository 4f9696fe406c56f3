package import PinfoldConfig
import PinfoldLoop

/// The path of `tls.key_log`, as it is found.
package enum KeyLogPlace {
  /// What speaks against the pipe as it is now, one line each: for the log, and for `check`.
  package static func warnings(_ configuration: Configuration) -> [String] {
    guard let path = configuration.tls.keyLog else { return [] }
    do throws(IOError) {
      guard let exposure = try NamedPipe.exposure(of: path) else {
        if let code = WritableDirectory.problem(of: path) { throw .system(code) }
        return []
      }
      guard exposure.isReadableByOthers else { return [] }
      let who = exposure.isForeign ? "another user's" : "readable by others (mode 0\(String(exposure.mode, radix: 8)))"
      return [
        "tls.key_log: \(path) is \(who): whoever reads it learns the apps' secrets; remove it and let run make it"
      ]
    } catch {
      return [StartError.cannotOpenKeyLog(path: path, error).text]
    }
  }
}
