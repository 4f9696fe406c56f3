import PinfoldLoop
import PinfoldModel

/// Serves a site until SIGTERM or SIGINT; SIGHUP reads the list of pins again.
enum PinServer {
  /// Blocks the calling thread. `started` is told where it listens, once it does.
  static func serve(
    _ site: PinServerSite, loop: EventLoop, at socket: consuming ListeningSocket, reloading list: ListedPins?,
    complain: @escaping @Sendable (String) -> Void, started: (Endpoint) -> Void
  ) throws(IOError) {
    let server = try HTTPServer(socket, loop: loop) { request, responder in
      loop.spawn { responder.send(await site.answer(request)) }
    }
    let signals = [
      try SignalListener(.hangUp, loop: loop) { _ in
        guard let list else { return complain("there is no list of pins to read again") }
        do throws(CommandFailure) { complain("read the pins of \(try list.reload()) hosts again") } catch {
          complain("kept the pins as they were: \(error.message)")
        }
      },
      try SignalListener(.terminate, loop: loop) { _ in loop.stop() },
      try SignalListener(.interrupt, loop: loop) { _ in loop.stop() },
    ]
    started(server.endpoint)
    loop.run()
    withExtendedLifetime((server, signals)) {}
  }
}
