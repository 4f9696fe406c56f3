import PinfoldLoop
import PinfoldModel
import PinfoldTLS

/// Finds the pins of a host by a handshake with it, and only of a chain that verifies for its name.
struct UpstreamPins: Sendable {
  /// Seconds for a look-up: name, connection, handshake.
  static let seconds = 10
  /// The port of the hosts.
  static let port: UInt16 = 443

  private let loop: EventLoop
  private let verifier: ChainVerifier
  private let probes = ProbeClient()
  /// Authorities that are dialled elsewhere.
  private let redirects: [Authority: SocketAddress]

  init(loop: EventLoop, trusting store: TrustStore, redirects: [Authority: SocketAddress]) {
    self.loop = loop
    verifier = ChainVerifier(trusting: store)
    self.redirects = redirects
  }

  /// The keys of the path that was built and verified, leaf first, without its root: a certificate that the server
  /// sent beside its chain is nobody's pin.
  func find(_ host: HostName) async -> Result<HostPins, PinLookUpFailure> {
    do throws(PinLookUpFailure) {
      let deadline = loop.deadline(after: .seconds(Self.seconds))
      let socket = try await connect(to: Authority(host: host, port: Self.port), deadline)
      let result: Result<ProbeResult, PinLookUpFailure>
      do throws(PinLookUpFailure) { result = .success(try await handshake(with: host, on: socket, deadline)) } catch {
        result = .failure(error)
      }
      socket.close()
      return .success(try judge(result.get(), host))
    } catch {
      return .failure(error)
    }
  }

  private func connect(to authority: Authority, _ deadline: Deadline) async throws(PinLookUpFailure) -> StreamSocket {
    var addresses: [IPAddress]
    var port = authority.port
    if let target = redirects[authority] {
      (addresses, port) = ([target.address], target.port)
    } else {
      do {
        // One for each look-up: look-ups are rare, and what resolv.conf says may change.
        let resolver = try Resolver(loop: loop)
        addresses = try await resolver.resolve(authority.host, deadline: deadline)
      } catch let error as ResolveError {
        throw .unknown(error.text)
      } catch {
        throw .unknown("name resolution failed")
      }
    }
    do throws(DialError) {
      return try await Dialer.connect(to: addresses, port: port, loop: loop, deadline: deadline)
    } catch {
      switch error {
      case .prohibited: throw .unknown("no address may be dialled")
      case .failed(let error): throw .unknown("cannot connect: \(error.text)")
      }
    }
  }

  private func handshake(
    with host: HostName, on socket: StreamSocket, _ deadline: Deadline
  ) async throws(PinLookUpFailure) -> ProbeResult {
    do {
      let session = try probes.session(ProbeOffer(serverName: host))
      var step = session.start()
      while true {
        switch step {
        case .send(let bytes): try await socket.send(bytes, deadline: deadline)
        case .needMore: break
        case .finished(let result, let farewell):
          try? await socket.send(farewell, deadline: deadline)
          return result
        case .failed(let detail, let farewell):
          try? await socket.send(farewell, deadline: deadline)
          throw PinLookUpFailure.unknown("TLS handshake: \(detail)")
        }
        let bytes = try await socket.receive(max: 65_536, deadline: deadline)
        step = bytes.isEmpty ? session.receiveEnd() : session.receive(bytes)
      }
    } catch let error as PinLookUpFailure {
      throw error
    } catch let error as IOError {
      throw .unknown("TLS handshake: \(error.text)")
    } catch {
      throw .unknown("TLS handshake: \(error)")
    }
  }

  private func judge(_ result: ProbeResult, _ host: HostName) throws(PinLookUpFailure) -> HostPins {
    let judgement: ChainJudgement
    do throws(TLSError) {
      judgement = try verifier.judge(certificates: result.certificates, host: host, now: WallClock.now)
    } catch {
      throw .unknown("its certificates: \(error.description)")
    }
    guard judgement.chainVerified else {
      throw .unknown("its chain does not verify: \(judgement.chainError ?? "no path to a trusted root")")
    }
    guard judgement.nameMatches else { throw .unknown("its certificate is for other names") }
    let path = judgement.builtChain.count > 1 ? judgement.builtChain.dropLast() : judgement.builtChain[...]
    return HostPins(keys: path.map(\.key), validUntil: judgement.validUntil)
  }
}
