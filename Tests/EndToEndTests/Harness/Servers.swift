import Foundation

/// A real TLS server on a free port of 127.0.0.1, answering `GET /` with text that holds `Servers.greeting`, where the
/// program can be told to.
enum Servers {
  static let greeting = "hello from upstream"

  /// A running server; ends with its owner.
  final class Running: Sendable {
    let port: UInt16
    private let child: Child
    private let workspace: Workspace

    fileprivate init(port: UInt16, workspace: Workspace, _ arguments: [String]) throws {
      self.port = port
      self.workspace = workspace
      let child = try Child(arguments)
      self.child = child
      try Wait.untilTrue("\(arguments[0]) on port \(port)") {
        if let ending = child.poll() { throw HarnessError("\(arguments) \(ending)\n\(child.errors)\(child.output)") }
        return try Socket.connect(to: port) != nil
      }
    }

    /// A file below the server's root.
    func path(_ name: String) -> String { workspace.path(name) }
  }

  /// nginx with one or several identities (of different key types, chosen by what the client offers) and the given
  /// protocol versions, such as `TLSv1.2`; `options` are further directives of the server. `fixedPort` takes the place of
  /// a free one: where an earlier server was.
  static func nginx(
    _ identities: Certificates.Identity..., protocols: String = "TLSv1.2 TLSv1.3", curve: String = "auto",
    options: String = "", at fixedPort: UInt16? = nil
  ) throws -> Running {
    let workspace = try Workspace("nginx")
    let port = try fixedPort ?? FreePort.next()
    let keys = identities.map { "ssl_certificate \($0.chainFile); ssl_certificate_key \($0.keyFile);" }
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
      "\($0)_temp_path \(workspace.path($0));"
    }
    let configuration = """
      daemon off; master_process off; pid \(workspace.path("pid")); error_log stderr crit;
      events { worker_connections 512; }
      http {
        access_log off; \(temporary.joined(separator: " "))
        server {
          listen 127.0.0.1:\(port) ssl; ssl_protocols \(protocols); ssl_ecdh_curve \(curve); \(options) \(keys.joined(separator: " "))
          location = / { default_type text/plain; return 200 "\(greeting)\\n"; }
          location / { root \(workspace.folder.path); }
        }
      }
      """
    let file = try workspace.write("nginx.conf", configuration)
    return try Running(
      port: port, workspace: workspace, ["nginx", "-p", workspace.folder.path, "-e", "stderr", "-c", file])
  }

  /// `openssl s_server -www`, which takes one connection at a time.
  static func openssl(_ identity: Certificates.Identity, _ options: [String]) throws -> Running {
    let port = try FreePort.next()
    let arguments = [
      "openssl", "s_server", "-accept", "127.0.0.1:\(port)", "-key", identity.keyFile, "-cert", identity.chainFile,
      "-cert_chain", identity.issuersFile, "-www", "-quiet",
    ]
    return try Running(port: port, workspace: Workspace("s_server"), arguments + options)
  }

  /// `gnutls-serv` with a GnuTLS priority string.
  static func gnutls(_ identity: Certificates.Identity, priority: String) throws -> Running {
    let port = try FreePort.next()
    return try Running(
      port: port, workspace: Workspace("gnutls"),
      [
        "gnutls-serv", "--http", "--quiet", "--port", "\(port)", "--x509certfile", identity.chainFile, "--x509keyfile",
        identity.keyFile, "--priority", priority,
      ])
  }

  /// A script of the Clients folder that listens on the port it is given first.
  static func script(_ name: String, _ arguments: String...) throws -> Running {
    let port = try FreePort.next()
    return try Running(
      port: port, workspace: Workspace("script"), ["python3", "\(Client.scripts)/\(name)", "\(port)"] + arguments)
  }
}
