import Foundation
import Glibc

/// Keys and certificates made with the openssl command line, once per run, thrown away at its end.
struct Certificates: Sendable {
  /// A key with the chain that a server sends for it.
  struct Identity: Sendable {
    let name: String
    let keyFile: String
    /// Leaf first, as the server sends it.
    let chainFile: String
    /// The chain without its leaf; may be empty.
    let issuersFile: String
    /// `sha256/…` of the leaf's key, worked out by openssl alone.
    let pin: String
    /// `cert-sha256/…` of the leaf.
    let certificatePin: String
  }

  private static let made = Result { try Certificates() }
  static func shared() throws -> Certificates { try made.get() }

  let folder: String
  /// The root to trust.
  let rootFile: String
  /// A root nobody trusts.
  let strangerRootFile: String
  let rootPin: String
  let intermediatePin: String
  /// Signed by the intermediate, which the chain file carries; for `api.pinfold.test` and `*.pinfold.test`.
  let ecdsa: Identity
  let rsa: Identity
  let ed25519: Identity
  /// Another key under the same name and the same authority: the mis-issued certificate that pins exist for.
  let other: Identity
  /// A good chain under another name.
  let wrongName: Identity
  /// From the stranger's root, under the right name.
  let stranger: Identity
  /// The stranger's leaf with our root and intermediate appended, which did not sign it.
  let strangerWithOurChain: Identity
  let selfSigned: Identity
  let expired: Identity
  /// May issue delegated credentials (RFC 9345 §4.2).
  let delegating: Identity
  /// A client's.
  let client: Identity

  private init() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-pki-\(getpid())").path
    self.folder = folder
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    Leftovers.add(folder: folder)
    let maker = CertificateMaker(folder: folder)
    try maker.authority("root", subject: "/CN=Pinfold test root")
    try maker.authority("stranger-root", subject: "/CN=Stranger root")
    try maker.intermediate("intermediate", by: "root", subject: "/CN=Pinfold test intermediate")
    rootFile = "\(folder)/root.pem"
    strangerRootFile = "\(folder)/stranger-root.pem"
    rootPin = try maker.keyPin("root")
    intermediatePin = try maker.keyPin("intermediate")
    let names = "DNS:api.pinfold.test,DNS:*.pinfold.test,IP:127.0.0.1"
    ecdsa = try maker.leaf("ecdsa", key: "ec:P-256", names: names, by: "intermediate")
    rsa = try maker.leaf("rsa", key: "rsa:2048", names: names, by: "intermediate")
    ed25519 = try maker.leaf("ed25519", key: "ed25519", names: names, by: "intermediate")
    other = try maker.leaf("other", key: "ec:P-256", names: names, by: "intermediate")
    wrongName = try maker.leaf("wrong-name", key: "ec:P-256", names: "DNS:www.elsewhere.test", by: "intermediate")
    stranger = try maker.leaf("stranger", key: "ec:P-256", names: names, by: "stranger-root")
    strangerWithOurChain = try maker.appending(["intermediate", "root"], to: stranger, as: "appended")
    selfSigned = try maker.leaf("self-signed", key: "ec:P-256", names: names, by: nil)
    expired = try maker.leaf("expired", key: "ec:P-256", names: names, by: "intermediate", days: -1)
    delegating = try maker.leaf(
      "delegating", key: "ec:P-256", names: names, by: "intermediate", extra: "1.3.6.1.4.1.44363.44=ASN1:NULL\n")
    client = try maker.leaf(
      "client", key: "ec:P-256", names: "DNS:app.pinfold.test", by: "intermediate", purpose: "clientAuth")
  }
}

/// The openssl calls behind `Certificates`.
struct CertificateMaker {
  let folder: String

  private func openssl(_ arguments: String...) throws { try Command.output(["openssl"] + arguments) }

  private func makeKey(_ name: String, _ kind: String) throws {
    let parts = kind.split(separator: ":")
    var arguments = ["openssl", "genpkey", "-out", "\(folder)/\(name).key", "-algorithm"]
    switch parts[0] {
    case "ec": arguments += ["EC", "-pkeyopt", "ec_paramgen_curve:\(parts[1])"]
    case "rsa": arguments += ["RSA", "-pkeyopt", "rsa_keygen_bits:\(parts[1])"]
    default: arguments += ["ED25519"]
    }
    try Command.output(arguments)
  }

  func authority(_ name: String, subject: String) throws {
    try makeKey(name, "ec:P-256")
    try openssl(
      "req", "-x509", "-new", "-key", "\(folder)/\(name).key", "-subj", subject, "-days", "30", "-out",
      "\(folder)/\(name).pem", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
  }

  func intermediate(_ name: String, by issuer: String, subject: String) throws {
    try makeKey(name, "ec:P-256")
    try sign(
      name, subject: subject, by: issuer, days: 30,
      extensions: "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\n")
  }

  func leaf(
    _ name: String, key: String, names: String, by issuer: String?, days: Int = 30, purpose: String = "serverAuth",
    extra: String = ""
  ) throws -> Certificates.Identity {
    try makeKey(name, key)
    let usage = "keyUsage=critical,digitalSignature" + (key.hasPrefix("rsa") ? ",keyEncipherment" : "")
    let extensions =
      "basicConstraints=CA:FALSE\n\(usage)\nextendedKeyUsage=\(purpose)\nsubjectAltName=\(names)\n\(extra)"
    try sign(name, subject: "/CN=\(name)", by: issuer, days: days, extensions: extensions)
    return try identity(name, issuers: issuer == "intermediate" ? ["intermediate"] : [])
  }

  /// The same leaf and key, sent with other certificates behind it.
  func appending(_ issuers: [String], to identity: Certificates.Identity, as name: String) throws
    -> Certificates.Identity
  {
    try FileManager.default.copyItem(atPath: "\(folder)/\(identity.name).pem", toPath: "\(folder)/\(name).pem")
    try FileManager.default.copyItem(atPath: identity.keyFile, toPath: "\(folder)/\(name).key")
    return try self.identity(name, issuers: issuers)
  }

  private func text(_ name: String) throws -> String {
    try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
  }

  private func identity(_ name: String, issuers: [String]) throws -> Certificates.Identity {
    let behind = try issuers.map { try text("\($0).pem") }.joined()
    try behind.write(toFile: "\(folder)/\(name)-issuers.pem", atomically: true, encoding: .utf8)
    let chain = try text("\(name).pem") + behind
    try chain.write(toFile: "\(folder)/\(name)-chain.pem", atomically: true, encoding: .utf8)
    let whole = try Command.output(
      ["sh", "-c", "openssl x509 -in \(folder)/\(name).pem -outform der | openssl dgst -sha256 -binary | base64"])
    return Certificates.Identity(
      name: name, keyFile: "\(folder)/\(name).key", chainFile: "\(folder)/\(name)-chain.pem",
      issuersFile: "\(folder)/\(name)-issuers.pem", pin: try keyPin(name),
      certificatePin: "cert-sha256/" + whole.trimmingCharacters(in: .newlines))
  }

  /// The pin by the recipe that RFC 7469 appendix A prints.
  func keyPin(_ name: String) throws -> String {
    let pipe =
      "openssl x509 -in \(folder)/\(name).pem -pubkey -noout | openssl pkey -pubin -outform der"
      + " | openssl dgst -sha256 -binary | base64"
    return "sha256/" + (try Command.output(["sh", "-c", pipe])).trimmingCharacters(in: .newlines)
  }

  private func sign(_ name: String, subject: String, by issuer: String?, days: Int, extensions: String) throws {
    let base = "\(folder)/\(name)"
    try extensions.write(toFile: "\(base).ext", atomically: true, encoding: .utf8)
    try openssl("req", "-new", "-key", "\(base).key", "-subj", subject, "-out", "\(base).csr")
    var arguments = ["openssl", "x509", "-req", "-in", "\(base).csr", "-out", "\(base).pem", "-extfile", "\(base).ext"]
    if let issuer {
      arguments += ["-CA", "\(folder)/\(issuer).pem", "-CAkey", "\(folder)/\(issuer).key", "-CAcreateserial"]
    } else {
      arguments += ["-signkey", "\(base).key"]
    }
    try Command.output(arguments + ["-days", "\(days)"])
  }
}
