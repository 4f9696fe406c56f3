import PinfoldModel
import PinfoldTLS

/// A handshake of a command's own with a server, to see whose key it has.
enum ServerHandshake {
  /// Seconds for connection and handshake.
  private static let timeout = 10

  /// The certificates of the server at `target`, which proved that it owns the key of the first one. `permits` says which
  /// addresses may be connected to.
  static func run(
    with authority: Authority, at target: Authority, permits: (IPAddress) -> Bool = { _ in true }
  ) throws(TLSError) -> ProbeResult {
    let connection: TCPConnection
    do throws(NetworkFailure) {
      connection = try TCPConnection(to: target, seconds: timeout, permits: permits)
    } catch {
      throw .failed(call: "connecting to \(target.text)", detail: error.message)
    }
    do throws(NetworkFailure) {
      let session: ProbeSession
      do throws(TLSError) {
        session = try ProbeClient().session(ProbeOffer(serverName: authority.host))
      } catch {
        throw NetworkFailure(message: error.description)
      }
      var step = session.start()
      while true {
        switch step {
        case .send(let bytes):
          try connection.send(bytes)
          step = try next(session, connection)
        case .needMore: step = try next(session, connection)
        case .finished(let result, let farewell):
          try connection.send(farewell)
          return result
        case .failed(let detail, let farewell):
          try? connection.send(farewell)
          throw NetworkFailure(message: detail)
        }
      }
    } catch {
      throw .failed(call: "TLS handshake", detail: error.message)
    }
  }

  private static func next(
    _ session: ProbeSession, _ connection: borrowing TCPConnection
  ) throws(NetworkFailure) -> ProbeStep {
    let bytes = try connection.receive()
    return bytes.isEmpty ? session.receiveEnd() : session.receive(bytes)
  }
}
