package import PinfoldModel

/// A device's key that is trusted apart from any policy: since it was the first one seen, or by pairing.
package struct TrustedKey: Equatable, Sendable {
  /// How the key became trusted. The raw value is the word of `trust list` and of the audit.
  package enum Origin: String, CaseIterable, Sendable {
    case firstUse = "first_use"
    case paired
  }

  /// What the device has to show, since when, and how that was learnt.
  package var pin: Pin
  package var since: Timestamp
  package var origin: Origin

  /// A key that is trusted from a moment on.
  package init(_ pin: Pin, since: Timestamp, origin: Origin) {
    self.pin = pin
    self.since = since
    self.origin = origin
  }
}

extension Decision {
  /// The same decision where it is known which key this host and port is trusted with; `nil`: with none.
  ///
  /// A rule with `trust_on_first_use` takes that key beside its own pins, and learns one where there is none. A paired
  /// device that nothing else speaks for is pinned to its key with a rule's defaults, but without chain and host name,
  /// and its port is open. Every other decision stays as it is.
  package func trusting(_ key: TrustedKey?) -> Decision {
    var copy = self
    if trustOnFirstUse, action == .inspect {
      guard let key else {
        copy.learnsKey = true
        return copy
      }
      if pins.isEmpty { copy.source = .device }
      copy.pins = pins.adding(key.pin)
      return copy
    }
    guard let key, key.origin == .paired, isUnpinned else { return self }
    copy.source = .device
    copy.pins = PinSet([key.pin])
    copy.action = .inspect
    copy.state = .enforce
    copy.verifyChain = false
    copy.portAllowed = true
    return copy
  }

  /// The same decision where a key of this host and port is kept and cannot be read: a device that nothing else speaks
  /// for is blocked, since what is not known must not make it an unpinned host.
  package func withUnreadableKey() -> Decision {
    guard isUnpinned else { return trusting(nil) }
    var copy = self
    copy.source = .device
    copy.action = .block(.pinsUnavailable)
    copy.state = .blocked
    return copy
  }

  /// The verdict on the first key of a rule that learns it: everything but the pins has to be in order. An allow means
  /// that this key may be learnt, and is none before it was.
  package func judgeFirstUse(_ evidence: Evidence, method: VerificationMethod) -> Verdict {
    guard learnsKey else { return judge(evidence, method: method) }
    // What a resumed session stems from was seen before: it is nothing to begin a trust with.
    guard method != .resumption else {
      return Verdict(
        .resumptionUnverified, method: method,
        detail: "no key of this host is trusted yet, and a resumed session shows none",
        leafKey: evidence.publicKey)
    }
    var copy = self
    copy.pins = pins.adding(.publicKey(evidence.publicKey))
    return copy.judge(evidence, method: method)
  }

  /// Whether neither rule nor builtin pin nor service speaks for the host, and the policy does not block everything.
  private var isUnpinned: Bool {
    guard source == .none, rule == nil else { return false }
    switch action {
    case .block(.unpinnedBlocked), .verifyOnly, .tunnel: return true
    case .block, .inspect: return false
    }
  }
}
