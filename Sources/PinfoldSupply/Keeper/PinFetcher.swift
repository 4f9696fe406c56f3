package import PinfoldLoop
package import PinfoldModel

/// Gets one document; `HTTPClient` in service, something without sockets in tests.
package protocol PinTransport {
  /// GETs a URL, whole or not at all, on the loop's thread. As `HTTPClient.get`.
  func get(
    _ url: HTTPURL, limit: Int, deadline: Deadline, security: (any TLSSessionSource)?
  ) async throws(HTTPFetchError) -> HTTPReply
}

/// Asks a service for the pins of a host: its URLs in turn, until one of them gives a record that is believed.
package struct PinFetcher {
  /// For all URLs together.
  package static let duration = Duration.seconds(10)

  /// What came of one URL.
  package enum Attempt: Sendable {
    /// A record that was believed.
    case success
    /// What went wrong.
    case fault(PinFetchFault)
  }

  private let transport: any PinTransport

  /// Fetches over this transport.
  package init(transport: any PinTransport) { self.transport = transport }

  /// The first record that is believed.
  ///
  /// Each URL but the last has an even share of the time that is left, so that one that hangs does not cost the others
  /// their turn.
  ///
  /// - Parameters:
  ///   - now: the time of day, and the steady clock, read anew at each call.
  ///   - objection: why a verified record is not to be taken; the next URL is tried then.
  ///   - note: told of each URL that was tried.
  package func fetch(
    _ host: HostName, _ service: PinService, now: () -> (wall: Timestamp, steady: Deadline),
    objection: (PinRecord) -> PinFetchFault?, note: (HTTPURL, Attempt) -> Void
  ) async -> Result<HeldPins, PinFetchFailure> {
    let deadline = now().steady.advanced(by: Self.duration)
    var attempts: [PinFetchFailure.Attempt] = []
    for (index, url) in service.urls.enumerated() {
      let left = deadline.duration(since: now().steady)
      let slice = now().steady.advanced(by: left / (service.urls.count - index))
      do throws(PinFetchFault) {
        let held = try await fetch(host, service, url, until: slice, now: now)
        if let fault = objection(held.record) { throw fault }
        note(url, .success)
        return .success(held)
      } catch {
        note(url, .fault(error))
        attempts.append(PinFetchFailure.Attempt(origin: url.origin, fault: error))
      }
    }
    return .failure(PinFetchFailure(attempts))
  }

  private func fetch(
    _ host: HostName, _ service: PinService, _ url: HTTPURL, until deadline: Deadline,
    now: () -> (wall: Timestamp, steady: Deadline)
  ) async throws(PinFetchFault) -> HeldPins {
    let reply: HTTPReply
    do throws(HTTPFetchError) {
      reply = try await transport.get(
        url.appending(query: "domain", host.text), limit: PinRecord.byteLimit, deadline: deadline,
        security: service.security)
      // A redirect leads somewhere that the configuration does not name.
      guard reply.status == 200 else { throw .status(reply.status) }
    } catch {
      throw .fetch(error)
    }
    let arrival = now().wall
    do throws(PinRecordError) {
      let record = try service.record(reply.body, for: host, at: arrival)
      return HeldPins(record, bytes: reply.body, received: arrival, trust: service.trust)
    } catch {
      throw .record(error)
    }
  }
}

extension HTTPClient: PinTransport {
  /// As `get` with all its parameters; asks for JSON.
  package func get(
    _ url: HTTPURL, limit: Int, deadline: Deadline, security: (any TLSSessionSource)?
  ) async throws(HTTPFetchError) -> HTTPReply {
    try await get(
      url, fields: [("Accept", "application/json")], limit: limit, deadline: deadline, security: security)
  }
}
