package import PinfoldLoop

extension Server {
  /// Serves on until the server has stopped, answering signals meanwhile: SIGHUP reloads, SIGTERM and SIGINT drain, a
  /// second one of these ends open tunnels at once. Blocks the calling thread; ends all threads before it returns.
  ///
  /// - Parameter endsWithTerminal: SIGHUP drains too: what serves a person at a terminal is not to outlive it.
  package func runUntilStopped(endsWithTerminal: Bool = false) throws(IOError) {
    let loop = try EventLoop()
    let drain: (Signal) -> Void = { [self] _ in self.drain() }
    let signals = [
      try SignalListener(.hangUp, loop: loop) { [self] _ in
        if endsWithTerminal { self.drain() } else { reload() }
      },
      try SignalListener(.terminate, loop: loop, handler: drain),
      try SignalListener(.interrupt, loop: loop, handler: drain),
    ]
    whenStopped { loop.stop() }
    loop.run()
    withExtendedLifetime(signals) {}
    stop()
  }
}
