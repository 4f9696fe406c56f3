final class Relay {
  func socketReady(_ socket: StreamSocket) {}
  func cancel() {}
}
