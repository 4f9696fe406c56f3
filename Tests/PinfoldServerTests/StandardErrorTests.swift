import Glibc
import PinfoldLoop
import Synchronization
import Testing

@testable import PinfoldServer

@Suite struct StandardErrorTests {
  /// Would catch lines that are lost or torn where whoever started the process made its standard error non-blocking.
  @Test("A full pipe that does not block is waited for") func nonBlocking() throws {
    var ends: [Int32] = [-1, -1]
    #expect(unsafe pipe(&ends) == 0)
    let (reader, writer) = (ends[0], ends[1])
    defer { close(reader) }
    #expect(fcntl(writer, F_SETFL, O_NONBLOCK) == 0)
    let sent = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }
    let thread = try LoopThread(name: "writer", loop: EventLoop())
    thread.loop.execute {
      _ = StandardError.write(sent, to: writer)
      close(writer)
    }
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 50_000)
    while true {
      let count = unsafe read(reader, &buffer, buffer.count)
      guard count > 0 else { break }
      received += buffer[..<count]
    }
    thread.stop()
    #expect(received == sent)
  }

  @Test("A reader that is gone is given up") func gone() throws {
    var ends: [Int32] = [-1, -1]
    #expect(unsafe pipe(&ends) == 0)
    _ = try EventLoop()  // From here on a write to nobody is an error, and not a signal.
    close(ends[0])
    #expect(StandardError.write([UInt8](repeating: 0x2e, count: 1_000_000), to: ends[1]) == 0)
    close(ends[1])
  }
}
