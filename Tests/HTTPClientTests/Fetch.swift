import Foundation
import PinfoldLoop
import PinfoldModel
import PinfoldTLS
import Testing

typealias Fetched = Result<HTTPReply, HTTPFetchError>

/// What one fetch gave and how long it took on its loop.
struct Timed: Sendable {
  let result: Fetched
  let time: Duration
}

/// Runs an async body on a fresh loop with a thread of its own, and ends both.
@discardableResult
func onLoop<Result: Sendable>(_ body: sending @escaping (EventLoop) async throws -> Result) async throws -> Result {
  let loop = try EventLoop()
  let thread = try LoopThread(name: "test-loop", loop: loop)
  defer { thread.stop() }
  return try await Task(executorPreference: loop) { try await body(loop) }.value
}

/// Fetches one URL on a loop of its own. Names come from a hosts file of `hosts`, else the system's.
func fetch(
  _ url: String, fields: [(name: String, value: String)] = [], limit: Int = 65_536, milliseconds: Int = 20_000,
  security: (any TLSSessionSource)? = nil, hosts: String = "/etc/hosts"
) async throws -> Timed {
  let url = try #require(HTTPURL(url))
  return try await onLoop { loop in
    let client = HTTPClient(
      loop: loop, resolver: try Resolver(loop: loop, hostsFile: hosts, configuration: "/dev/null"))
    let start = Deadline.now
    let result: Fetched
    do throws(HTTPFetchError) {
      let deadline = loop.deadline(after: .milliseconds(milliseconds))
      result = .success(try await client.get(url, fields: fields, limit: limit, deadline: deadline, security: security))
    } catch {
      result = .failure(error)
    }
    return Timed(result: result, time: Deadline.now.duration(since: start))
  }
}

/// Fetches a path from the reply server, over TLS with its root trusted unless `port` is the plain one.
func fetch(
  _ path: String, from port: ReplyServer.Port, host: String = "localhost", fields: [(name: String, value: String)] = [],
  limit: Int = 65_536, milliseconds: Int = 20_000
) async throws -> Timed {
  let server = try ReplyServer.shared.get()
  let scheme = port == .plain ? "http" : "https"
  return try await fetch(
    "\(scheme)://\(host):\(server.port(port))\(path)", fields: fields, limit: limit, milliseconds: milliseconds,
    security: server.trust())
}
