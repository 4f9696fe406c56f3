import Glibc
import Testing

@testable import PinfoldCommand

@Suite struct FileAccessTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test func `a created file has exactly the mode asked for`() throws {
    try FileAccess.create(scratch["secret"], [1, 2, 3], mode: 0o600)
    #expect(scratch.mode("secret") == 0o600)
    #expect(try FileAccess.read(scratch["secret"], limit: 3) == [1, 2, 3])
  }

  @Test func `an existing file is not overwritten`() throws {
    try scratch.write("kept", "old")
    let path = scratch["kept"]
    #expect(throws: FileFailure(message: "cannot create \"\(path)\": File exists")) {
      try FileAccess.create(path, [9], mode: 0o600)
    }
    #expect(try scratch.read("kept") == "old")
  }

  @Test func `a link is not followed when a file is created`() throws {
    #expect(unsafe symlink(scratch["elsewhere"], scratch["link"]) == 0)
    let path = scratch["link"]
    #expect(throws: FileFailure.self) { try FileAccess.create(path, [9], mode: 0o600) }
    #expect(scratch.names == ["link"])
  }

  @Test func `a replaced file leaves nothing beside it`() throws {
    try scratch.write("policy", "one")
    try scratch.write("policy", "two")
    #expect(try scratch.read("policy") == "two")
    #expect(scratch.names == ["policy"])
  }

  @Test func `a target that cannot be replaced is named and the temporary file removed`() throws {
    let path = scratch["directory"]
    #expect(unsafe mkdir(path, 0o700) == 0)
    #expect(throws: FileFailure(message: "cannot write \"\(path)\": Is a directory")) {
      try FileAccess.replace(path, [1], mode: 0o644)
    }
    #expect(scratch.names == ["directory"])
    unsafe rmdir(path)
  }

  @Test func `an unwritable directory is told by the name the user gave`() throws {
    let path = scratch["missing/policy"]
    #expect(throws: FileFailure(message: "cannot create \"\(path)\": No such file or directory")) {
      try FileAccess.replace(path, [1], mode: 0o644)
    }
  }

  @Test func `reading stops at the limit`() {
    #expect(throws: FileFailure(message: #"cannot read "/dev/zero": longer than 100 bytes"#)) {
      try FileAccess.read("/dev/zero", limit: 100)
    }
  }

  @Test(arguments: [("/nonexistent/file", "No such file or directory"), ("/", "Is a directory")])
  func `a file that cannot be read is named with the system's words`(path: String, words: String) {
    #expect(throws: FileFailure(message: "cannot read \"\(path)\": \(words)")) {
      try FileAccess.read(path, limit: 100)
    }
  }
}
