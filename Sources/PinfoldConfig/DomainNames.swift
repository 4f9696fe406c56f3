import CDomain
package import PinfoldModel
package import PinfoldPolicy

/// Why a text names no host that may be pinned, in a sentence that says what would be right.
package struct DomainNameError: Error, Hashable, Sendable {
  /// One sentence.
  package var message: String
}

/// Domain names as people write them: internationalised, and not all of them anybody's to pin.
package enum DomainNames {
  /// Reads a host that may be internationalised: names become A-labels (UTS 46, non-transitional).
  package static func host(_ text: String) throws(DomainNameError) -> HostName {
    let ascii = try ascii(text)
    guard let host = HostName(ascii, bracketed: ascii.hasPrefix("[")) else {
      throw DomainNameError(message: HostPatternError.badHost.text)
    }
    return host
  }

  /// Reads a host with its port, or without one: `defaultPort` stands in. A name may be internationalised.
  package static func authority(_ text: String, defaultPort: UInt16) -> Authority? {
    if let plain = Authority(text, defaultPort: defaultPort) { return plain }
    return (try? converted(text)).flatMap { Authority($0, defaultPort: defaultPort) }
  }

  /// Reads a host pattern that may be internationalised, and refuses public suffixes (`com`, `*.co.uk`): a pin on all
  /// of them is a typing error. Single-label names that ICANN has not given out (`localhost`) are nobody's suffix.
  package static func pattern(_ text: String) throws(DomainNameError) -> HostPattern {
    let pattern: HostPattern
    do throws(HostPatternError) {
      pattern = try HostPattern(needsConversion(text) ? try converted(text) : text)
    } catch {
      throw DomainNameError(message: error.text)
    }
    if case .name(let name) = pattern.host, isPublicSuffix(name) {
      throw DomainNameError(
        message: "\"\(name)\" is a public suffix under which strangers register names: name a domain below it")
    }
    return pattern
  }

  /// Converts the name between wildcard and port; what the conversion makes of them must not become part of either.
  private static func converted(_ text: String) throws(HostPatternError) -> String {
    let prefix = text.hasPrefix("**.") ? "**." : text.hasPrefix("*.") ? "*." : ""
    let rest = text.dropFirst(prefix.count)
    let colon = rest.lastIndex(of: ":") ?? rest.endIndex
    guard let name = try? ascii(String(rest[..<colon])), !name.utf8.contains(where: { $0 == 0x2a || $0 == 0x3a })
    else { throw .badHost }
    return prefix + name + rest[colon...]
  }

  private static func needsConversion(_ text: String) -> Bool {
    if text.utf8.contains(where: { $0 >= 0x80 }) { return true }
    // A-labels are checked too: not everything behind "xn--" is one. Most names have no such byte sequence.
    var dashes = 0
    for byte in text.utf8 {
      dashes = byte == 0x2d ? dashes + 1 : 0
      if dashes == 2 { return text.lowercased().split(separator: ".").contains { $0.hasPrefix("xn--") } }
    }
    return false
  }

  private static func ascii(_ text: String) throws(DomainNameError) -> String {
    guard needsConversion(text) else { return text }
    guard text.utf8.count <= 1024, !text.utf8.contains(0) else {
      throw DomainNameError(message: HostPatternError.badHost.text)
    }
    // idn2_to_ascii_8z(3): the result is allocated by libidn2 and freed with idn2_free(3).
    var output: UnsafeMutablePointer<CChar>?
    let flags = Int32(IDN2_NONTRANSITIONAL.rawValue | IDN2_NFC_INPUT.rawValue)
    let code = unsafe idn2_to_ascii_8z(text, &output, flags)
    defer { unsafe idn2_free(output) }
    guard code == IDN2_OK.rawValue, let converted = unsafe output else {
      throw DomainNameError(message: "\"\(text)\" cannot be written as a domain name (UTS 46)")
    }
    return unsafe String(cString: converted)
  }

  /// Whether the name is on the ICANN part of the Public Suffix List (psl_is_public_suffix2(3)), in the list that is
  /// built into libpsl: it needs no file and is the same for every run.
  static func isPublicSuffix(_ name: String) -> Bool {
    let types = PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE
    return unsafe psl_is_public_suffix2(psl_builtin(), name, types) == 1
  }
}
