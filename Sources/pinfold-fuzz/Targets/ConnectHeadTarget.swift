import PinfoldModel
import PinfoldWire

/// Promises: the cut of the bytes does not matter; a request ends where it says, and its authority is one that reads
/// back; one byte less is no request yet.
enum ConnectHeadTarget {
  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    var whole = ConnectHeadReader()
    let event = whole.receive(bytes.span)
    for size in [1, 3, 64] {
      var cut = ConnectHeadReader()
      var answer = ConnectHeadReader.Event.incomplete
      for piece in bytes.pieces(of: size) {
        answer = cut.receive(piece.span)
        if answer != .incomplete { break }
      }
      try BrokenPromise.unless(answer == event, "in pieces of \(size): \(answer), at once: \(event)")
    }
    switch event {
    case .incomplete:
      try BrokenPromise.unless(bytes.count <= WireLimits.connectHead, "a head without an end is waited for")
    case .refused(let refusal):
      try BrokenPromise.unless([400, 405].contains(refusal.status), "status \(refusal.status)")
      try BrokenPromise.unless((0...bytes.count).contains(refusal.offset), "a refusal behind the last byte")
    case .request(let request): try check(request, whole.surplus, bytes)
    }
  }

  private static func check(
    _ request: ConnectRequest, _ surplus: ArraySlice<UInt8>, _ bytes: [UInt8]
  ) throws(BrokenPromise) {
    let end = request.headLength
    try BrokenPromise.unless(end <= min(bytes.count, WireLimits.connectHead), "the head is longer than what came")
    try BrokenPromise.unless(bytes[..<end].suffix(4).elementsEqual([13, 10, 13, 10]), "no blank line ends the head")
    try BrokenPromise.unless(surplus.elementsEqual(bytes[end...]), "bytes behind the head are lost")
    try BrokenPromise.unless(request.authority.port != 0, "port 0")
    let text = request.authority.text
    try BrokenPromise.unless(Authority(text) == request.authority, "\(text) reads back as another authority")
    var shorter = ConnectHeadReader()
    try BrokenPromise.unless(shorter.receive(Array(bytes[..<(end - 1)]).span) == .incomplete, "a request too early")
    if let place = request.proxyAuthorization {
      try BrokenPromise.unless(place.lowerBound >= 0 && place.upperBound < end, "credentials outside the head")
      let value = bytes[place]
      let credentials = BasicCredentials(value)
      try BrokenPromise.unless(
        credentials.map { BasicCredentials.isUserName(Array($0.user.utf8)) } ?? true, "a bad user")
      try BrokenPromise.unless(!value.contains(10) && !value.contains(13), "a line end in a field's value")
    }
  }
}
