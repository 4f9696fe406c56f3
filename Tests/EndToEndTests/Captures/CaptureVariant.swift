import Testing

/// A way to play all captures, or those it makes a difference to.
struct CaptureVariant: Sendable {
  let name: String
  let policy: CapturePolicy
  /// Bytes of each write.
  var piece = Int.max
  var includes: @Sendable (Capture) -> Bool = { _ in true }

  func rows() -> [CaptureRow] { Capture.all.filter(includes).map { CaptureRow(capture: $0, variant: self) } }

  static let pinned = CaptureVariant(name: "pinned", policy: CapturePolicy())
  static let otherPin = CaptureVariant(name: "other pin", policy: CapturePolicy(pin: .other))
  static let certificate = CaptureVariant(
    name: "certificate", policy: CapturePolicy(pin: .certificate), includes: { $0.facts.leafSha256 != nil })
  static let device = CaptureVariant(
    name: "device", policy: CapturePolicy(verifyChain: false, mayMissName: true),
    includes: { $0.facts.chainVerifies != true || $0.facts.nameMatches != true || $0.facts.sni == nil })
  static let strangeDevice = CaptureVariant(
    name: "strange device", policy: CapturePolicy(pin: .other, verifyChain: false, mayMissName: true),
    includes: device.includes)
  static let denied = CaptureVariant(name: "denied", policy: CapturePolicy(tls13: "deny"))
  static let inPieces = CaptureVariant(name: "in pieces", policy: CapturePolicy(), piece: 61)
  static let pairs = CaptureVariant(
    name: "pair", policy: CapturePolicy(session: .known),
    includes: { $0.facts.pair != nil && $0.facts.outcome == "resumed" })

  static let probed = CaptureVariant(name: "probed", policy: CapturePolicy(tls13: "probe"))
  static let probedOtherPin = CaptureVariant(
    name: "probed, other pin", policy: CapturePolicy(pin: .other, tls13: "probe"))

  /// Played where there is a key log.
  static let all = [pinned, otherPin, certificate, device, strangeDevice, denied, inPieces, pairs]
  /// Played where there is none.
  static let withoutKeyLog = [probed, probedOtherPin]
}

/// One capture under one variant.
struct CaptureRow: Sendable, CustomTestStringConvertible {
  let capture: Capture
  let variant: CaptureVariant
  /// Its name on the stage.
  var place: String { "\(variant.name) \(capture.name)" }
  var testDescription: String { capture.name }
}
