import Glibc
import PinfoldModel
import PinfoldTLS
import Testing

@testable import PinfoldCommand

@Suite struct ChildProcessTests {
  @Test func `both outputs and the exit code come back`() throws {
    let child = try ChildProcess("/bin/sh", ["-c", "echo out; echo err >&2; exit 7"])
    #expect(child.status == 7)
    #expect(child.output == "out\n")
    #expect(child.errors == "err\n")
  }

  @Test func `a signal is told from an exit code`() throws {
    #expect(try ChildProcess("/bin/sh", ["-c", "kill -9 $$"]).status == 137)
  }

  @Test func `standard input is empty`() throws {
    #expect(try ChildProcess("/bin/sh", ["-c", "cat; echo end"]).output == "end\n")
  }

  @Test func `a program that is not there is told with its path`() {
    #expect(throws: FileFailure(message: #"cannot run "/nonexistent": No such file or directory"#)) {
      try ChildProcess("/nonexistent", [])
    }
  }

  @Test func `programs are found in the path`() {
    #expect(ChildProcess.find("sh")?.hasSuffix("/sh") == true)
    #expect(ChildProcess.find("no-such-program-anywhere") == nil)
  }
}

@Suite struct LocalPortTests {
  @Test func `a port that somebody listens on is not free, and is free again afterwards`() throws {
    let authority = try DemoAuthority(commonName: "Test Root", now: WallClock.now)
    let host = try #require(HostName("a.test"))
    let identity = try authority.issue(.init(commonName: "a.test", hosts: [host], now: WallClock.now))
    let upstream = try DemoUpstream(identity, text: "")
    let message =
      "port \(upstream.port) of 127.0.0.1 cannot be used: Address already in use; choose another with --port"
    #expect(throws: NetworkFailure(message: message)) {
      try LocalPort.demandFree(upstream.port, option: "--port")
    }
    upstream.stop()
    // The accepting thread closes the socket a moment later.
    var isFree = false
    for _ in 0..<100 where !isFree {
      isFree = (try? LocalPort.demandFree(upstream.port, option: "--port")) != nil
      if !isFree { usleep(20_000) }
    }
    #expect(isFree)
  }
}

@Suite struct PrivateDirectoryTests {
  @Test func `it is private while it lives and gone afterwards`() throws {
    let path: String
    do {
      let directory = try PrivateDirectory()
      path = directory.path
      try directory.write("note", "text")
      #expect(unsafe mkdir(directory.file("inner"), 0o700) == 0)
      try FileAccess.create(directory.file("inner/deep"), [1], mode: 0o600)
      var status = stat()
      #expect(unsafe stat(path, &status) == 0)
      #expect(status.st_mode & 0o7777 == 0o700)
      #expect(try FileAccess.read(directory.file("note"), limit: 10) == Array("text".utf8))
    }
    #expect(unsafe access(path, F_OK) != 0)
  }
}
