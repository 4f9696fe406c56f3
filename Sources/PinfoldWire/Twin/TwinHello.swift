/// A ClientHello that cannot be told from the app's: its bytes and its record framing, with a random and key shares of
/// Pinfold's own, and a made-up pre_shared_key where the app offered one.
///
/// **Everything else is left as it is, on purpose.** GREASE values, the order of extensions (Chromium draws it anew for
/// each connection) and the content of a GREASE encrypted_client_hello are the same in both hellos. They do say that the
/// two belong together, which the address and the moment say anyway; they cannot say which one is the app's, since
/// neither is older or more regular than the other. Drawing them anew would break the equality of JA3 and JA4, and an ECH
/// payload cannot be told from a real one, whose bytes mean something.
///
/// So it is with the session id: one that names a session of TLS 1.2 was seen before, or is the hash of the ticket beside
/// it, as OpenSSL makes it. And a random may begin with what the app's clock says, right or wrong (RFC 5246 §7.4.1.2).
///
/// What does tell them apart: a pre-shared key, which only the app's hello has for real. docs/threat-model.md.
package struct TwinHello: Sendable {
  /// What to send: all records, headers included; in front of a second hello the ChangeCipherSpec, if the app sent one.
  package let bytes: [UInt8]
  /// The hello in it, read back.
  package let hello: ClientHello

  /// Bytes of a random behind the four that may be the time.
  package static let freshCount = 28

  /// Random bytes needed for the made-up pre_shared_key.
  package static func fillerCount(for app: ClientHello) -> Int {
    app.pskIdentities.reduce(0) { $0 + $1.count + 4 } + app.pskBinders.reduce(0) { $0 + $1.count }
  }

  /// The twin of a first hello.
  package init(of app: ClientHello, with material: TwinMaterial) throws(TwinImpossible) {
    guard app.offersTLS13 else { throw .notTLS13 }
    guard material.random.count == Self.freshCount else { throw .material }
    var edits = TwinEdits(app)
    edits.replace(app.randomRange.suffix(Self.freshCount), by: material.random)
    try edits.replaceShares(by: material.shares)
    try edits.replaceKeys(filler: material.filler, known: [:], ages: [:])
    let sent = try edits.records()
    bytes = sent
    var reader = ClientHelloReader()
    guard case .hello(let read) = reader.receive(sent.span) else { throw .material }
    hello = read
  }

  /// The twin of a second hello, which answers a HelloRetryRequest.
  ///
  /// - Parameters:
  ///   - app: the app's second hello.
  ///   - first: the app's first hello.
  ///   - twin: the twin of that one; random and pre-shared keys go on from there.
  ///   - retry: the request the *twin* got: its cookie takes the place of the one the app got.
  ///   - material: shares and filler; the random is not used.
  package init(
    of app: ClientHello, after first: ClientHello, twin: TwinHello, retry: ServerHello, with material: TwinMaterial
  ) throws(TwinImpossible) {
    guard first.isAnswered(by: app, asAfter: retry) else { throw .differentRetry }
    var edits = TwinEdits(app)
    edits.replace(app.randomRange, by: twin.hello.random)
    try edits.replaceShares(by: material.shares)
    let known = TwinEdits.keysSent(first, twin.hello)
    try edits.replaceKeys(filler: material.filler, known: known.identities, ages: known.ages)
    if let cookie = retry.cookieRange { try edits.replaceCookie(by: retry.message[cookie]) }
    let changeCipherSpec: [UInt8] = app.changeCipherSpec == nil ? [] : [20, 3, 3, 0, 1, 1]
    let sent = changeCipherSpec + (try edits.records())
    bytes = sent
    var reader = ClientHelloReader(after: twin.hello)
    guard case .hello(let read) = reader.receive(sent.span) else { throw .material }
    hello = read
  }
}

extension ClientHello {
  /// Whether the app's second hello could be an answer to `retry`, which another connection got: the same request, but
  /// for the bytes of a cookie.
  fileprivate func isAnswered(by second: ClientHello, asAfter retry: ServerHello) -> Bool {
    guard second.extensions.has(ExtensionType.cookie) == (retry.cookieRange != nil) else { return false }
    return second.keyShares.map(\.group) == (retry.keyShareGroup.map { [$0] } ?? keyShares.map(\.group))
  }
}
