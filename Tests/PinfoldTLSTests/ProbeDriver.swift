import Foundation
import PinfoldTLS

/// Drives a probe over a blocking socket on loopback.
enum ProbeDriver {
  /// The last step of the probe: `finished` or `failed`.
  static func run(_ session: ProbeSession, port: UInt16) throws -> ProbeStep {
    let descriptor = try connect(to: port)
    defer { close(descriptor) }
    var step = session.start()
    var buffer = [UInt8](repeating: 0, count: 3000)
    while true {
      switch step {
      case .send(let bytes): try send(bytes, descriptor)
      case .needMore: break
      case .finished(_, let farewell), .failed(_, let farewell):
        try? send(farewell, descriptor)
        return step
      }
      let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
      step = count > 0 ? session.receive(Array(buffer[..<count])) : session.receiveEnd()
    }
  }

  static func connect(to port: UInt16) throws -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var wait = timeval(tv_sec: 20, tv_usec: 0)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let connected = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard connected == 0 else {
      close(descriptor)
      throw Unexpected()
    }
    return descriptor
  }

  static func send(_ bytes: [UInt8], _ descriptor: Int32) throws {
    let sent = unsafe Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    guard sent == bytes.count else {
      throw Unexpected()
    }
  }
}

/// `openssl s_server` on a free loopback port, with a self-signed certificate of its own; ends with the object.
final class TestServer {
  let port: UInt16
  let certificate: Certificate
  private let process = Process()
  private let folder: URL

  /// `key` as openssl-req's -newkey takes it; `options` go to s_server.
  init(key: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], _ options: [String]) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let keyPath = folder.appending(path: "key.pem").path()
    let path = folder.appending(path: "cert.pem").path()
    _ = try runOpenSSL(
      ["req", "-x509", "-nodes", "-newkey"] + key
        + ["-keyout", keyPath, "-out", path, "-subj", "/CN=device", "-days", "2"])
    certificate = try CertificateFile.read(path)[0]
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments =
      ["s_server", "-accept", "127.0.0.1:0", "-cert", path, "-key", keyPath, "-www"] + options
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    var text = ""
    while !text.contains("ACCEPT") || !text.hasSuffix("\n") {
      let part = output.fileHandleForReading.availableData
      guard !part.isEmpty else { throw Unexpected() }
      text += String(decoding: part, as: UTF8.self)
    }
    let digits = text.split(separator: ":").last?.filter(\.isNumber) ?? ""
    guard let port = UInt16(digits) else { throw Unexpected() }
    self.port = port
  }

  deinit {
    // SIGTERM may be blocked in the thread that starts the process, and in the process then, too.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: folder)
  }
}
