internal import CLibevent
internal import CLinux

/// The reading end of a named pipe (fifo(7)) on one loop. Any number of programs may write into it.
///
/// Made on the thread that owns the loop, and to be let go there. The file stays when the reader goes: a program that is
/// told to write there must not make a plain file of it instead.
@safe
package final class NamedPipe {
  private let loop: EventLoop
  private let descriptor: Int32
  private let receive: (inout [UInt8]) -> Void
  private var registration: OpaquePointer?

  /// Opens the pipe, making it first if there is none.
  ///
  /// - Parameters:
  ///   - mode: permissions of a pipe that is made, whatever the umask.
  ///   - receive: called on the loop's thread with what was written, in no particular cut; may zero the bytes.
  /// - Throws: a system error; `.system(EEXIST)` when something else has the path.
  package init(
    path: String, mode: UInt32, loop: EventLoop, receive: @escaping (inout [UInt8]) -> Void
  ) throws(IOError) {
    loop.preconditionOnLoop()
    let opened = unsafe pinfold_open_fifo(path, mode)
    guard opened >= 0 else { throw IOError(making: opened) }
    descriptor = Int32(opened)
    self.loop = loop
    self.receive = receive
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe registration = event_new(loop.base, descriptor, pinfold_ev_level, pipeReady, context)
    guard unsafe registration != nil, unsafe event_add(registration, nil) == 0 else { throw .descriptorsExhausted }
  }

  /// Leaves what is written in the pipe until `resume`; it holds 64 KiB, and who writes more waits (pipe(7)).
  package func pause() {
    loop.preconditionOnLoop()
    unsafe _ = event_del(registration)
  }

  /// Reads again, at once what was written meanwhile; `false` when the kernel is out of means and it is to be called
  /// again.
  package func resume() -> Bool {
    loop.preconditionOnLoop()
    return unsafe event_add(registration, nil) == 0
  }

  /// What a named pipe that is there already allows others; `nil` where there is none yet.
  package struct Exposure: Equatable, Sendable {
    /// Permissions as chmod(2) takes them.
    package let mode: UInt32
    /// Whether it belongs to a user who is neither this process's nor root.
    package let isForeign: Bool

    /// Whether somebody else can read what is written into it.
    package var isReadableByOthers: Bool { isForeign || mode & 0o044 != 0 }
  }

  /// Looks at the path without opening it.
  /// - Throws: a system error; `.system(EEXIST)` when something else has the path.
  package static func exposure(of path: String) throws(IOError) -> Exposure? {
    var mode: UInt32 = 0
    var isForeign: Int32 = 0
    let looked = unsafe pinfold_look_at_fifo(path, &mode, &isForeign)
    if looked == -Int(ENOENT) { return nil }
    guard looked >= 0 else { throw IOError(making: looked) }
    return Exposure(mode: mode, isForeign: isForeign != 0)
  }

  deinit {
    unsafe registration.map { unsafe event_free($0) }
    pinfold_close(descriptor)
  }

  /// Reads once, at most what the loop's scratch buffer holds: a flood must not keep the loop from its other work.
  fileprivate func ready() {
    guard let start = unsafe loop.scratch.baseAddress else { return }
    let count = unsafe pinfold_read(descriptor, start, EventLoop.scratchSize)
    guard count > 0 else { return }
    var bytes = unsafe [UInt8](loop.scratch[..<count])
    loop.eraseScratch(count)
    receive(&bytes)
  }
}

private func pipeReady(_: Int32, _: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<NamedPipe>.fromOpaque(context).takeUnretainedValue().ready()
}
