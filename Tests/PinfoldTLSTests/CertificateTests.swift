import Foundation
import PinfoldModel
import PinfoldTLS
import Testing

/// Reading certificates and files of them.
struct CertificateTests {
  private let now = Timestamp(seconds: 1_800_000_000)

  private func write(_ bytes: some Sequence<UInt8>) throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path()
    try Data(bytes).write(to: URL(filePath: path))
    return path
  }

  @Test func `Details are those that were asked for`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let leaf = try root.issue(.init(commonName: "leaf.example.com", now: now)).chain[0]
    #expect(leaf.commonName == "leaf.example.com")
    #expect(leaf.notBefore == Timestamp(seconds: now.seconds - 3600))
    #expect(leaf.notAfter == Timestamp(seconds: now.seconds + 86_400))
    #expect(!leaf.isAuthority)
    #expect(root.certificate.isAuthority)
    #expect(leaf.pinLine == "sha256/\(leaf.keyDigest.base64)  CN=leaf.example.com")
  }

  @Test func `A common name cannot write to a terminal`() throws {
    let root = try DemoAuthority(commonName: "a\u{1b}[31m\u{202e}b\nc", now: now)
    #expect(root.certificate.commonName == "a?[31m?b?c")
  }

  @Test func `A file of several certificates is listed leaf first`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let middle = try DemoAuthority(commonName: "Middle", now: now, signedBy: root)
    let leaf = try middle.issue(.init(commonName: "leaf", now: now)).chain[0]
    let text = try [root.certificate, middle.certificate, leaf].map { try $0.pem() }.joined(separator: "text between\n")
    let path = try write(text.utf8)
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(try CertificateFile.read(path).map(\.digest) == [leaf, root.certificate, middle.certificate].map(\.digest))
  }

  @Test func `A DER file and a PEM file of one certificate are the same`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let der = try write(root.certificate.der())
    let pem = try write(root.certificate.pem().utf8)
    defer { for path in [der, pem] { try? FileManager.default.removeItem(atPath: path) } }
    #expect(try CertificateFile.read(der).map(\.digest) == [root.certificate.digest])
    #expect(try CertificateFile.read(pem).map(\.digest) == [root.certificate.digest])
  }

  @Test(arguments: Capture.withChain.prefix(10))
  func `A captured chain file is read in its order`(_ capture: Capture) throws {
    let read = try CertificateFile.read(capture.chainPath)
    #expect(read.first?.keyDigest.base64 == capture.facts.leafSpkiSha256)
    #expect(read.count == capture.chain.count)
  }

  @Test func `Files without certificates, broken ones and missing ones are errors that say what was wanted`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let pem = try root.certificate.pem()
    let rows: [(String, String)] = [
      ("nothing here", "no certificate found; expected PEM or DER"),
      (pem + pem.dropLast(60), "certificate 2 is broken"),
      (pem + pem.replacingOccurrences(of: "MII", with: "!!!"), "certificate 2 is broken"),
    ]
    for (text, message) in rows {
      let path = try write(text.utf8)
      defer { try? FileManager.default.removeItem(atPath: path) }
      #expect(throws: TLSError.unreadable("\(path): \(message)")) { try CertificateFile.read(path) }
    }
    #expect(throws: TLSError.failed(call: "opening /nonexistent/file", detail: "No such file or directory")) {
      try CertificateFile.read("/nonexistent/file")
    }
  }

  @Test func `A store wants a file with certificates, and the system's is there`() throws {
    _ = try TrustStore()
    _ = try TrustStore(caFile: Capture.trustedPath)
    let empty = try write("".utf8)
    defer { try? FileManager.default.removeItem(atPath: empty) }
    for path in ["/nonexistent/ca.pem", empty] {
      let error = #expect(throws: TLSError.self) { try TrustStore(caFile: path) }
      #expect(error?.description.hasPrefix("loading \(path): ") == true)
      #expect(error?.description.hasSuffix("expected a PEM file with at least one CA certificate") == true)
    }
  }

  @Test func `An error queue that another call left behind is not blamed on the next`() throws {
    #expect(throws: TLSError.self) { try Certificate(der: [0x30, 0x03, 1, 2, 3]) }
    let root = try DemoAuthority(commonName: "Root", now: now)
    #expect(throws: TLSError.unreadable("1 bytes behind a certificate")) {
      try Certificate(der: try root.certificate.der() + [0])
    }
  }
}
