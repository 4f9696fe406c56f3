import Foundation
import PinfoldConfig
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldWire
import Synchronization
import Testing

@testable import PinfoldServer

/// Lines of credentials that cost next to nothing to check.
enum CheapCredentials {
  /// argon2id with 8 KiB and one pass over the password "right".
  static let right = "$argon2id$v=19$m=8,t=1,p=1$BIURYVVIYXS9YYSBJCLi2g$ZDSEsZCUnHrVX2jRmUXifoUdgRkCIAoFrL7novrh558"

  static func list(_ text: String) throws -> CredentialList { try CredentialList(Array(text.utf8), file: "users") }
  static func secret(_ text: String) throws -> SecretBytes { try SecretBytes(copying: Array(text.utf8)) }
  static func credentials(_ user: String, _ password: String) -> BasicCredentials? {
    let text = Data("\(user):\(password)".utf8).base64EncodedString()
    return BasicCredentials(Array("Basic \(text)".utf8)[...])
  }
}

@Suite struct CredentialListTests {
  private static let hash = CheapCredentials.right

  @Test("Users are admitted by their own password only") func admits() throws {
    let list = try CheapCredentials.list("# team\n\nalice:\(Self.hash)\nbob:\(Self.hash)\n")
    #expect(list.count == 2)
    #expect(list.warnings == [])
    #expect(try list.admits("alice", CheapCredentials.secret("right")))
    for (user, password) in [("alice", "wrong"), ("alice", ""), ("carol", "right"), ("", "right"), ("Alice", "right")] {
      #expect(try !list.admits(user, CheapCredentials.secret(password)), "\(user)")
    }
  }

  /// Would catch a name that two programs spell in two ways standing for one user.
  @Test("Two spellings of a letter are two users") func spelling() throws {
    let list = try CheapCredentials.list("\u{e9}:\(Self.hash)\n")
    #expect(try list.admits("\u{e9}", CheapCredentials.secret("right")))
    #expect(try !list.admits("e\u{301}", CheapCredentials.secret("right")))
  }

  /// Would catch a list that tells by its time who is in it.
  @Test("An unknown user is checked against a hash of the same costs as a known one, and never admitted")
  func unknownUsers() throws {
    let hash = try PasswordHash(of: CheapCredentials.secret("right")).text
    let list = try CheapCredentials.list("alice:\(hash)\n")
    let known = try #require(list.hash(for: "alice"))
    let unknown = try #require(list.hash(for: "nobody"))
    #expect(known.isKnown && !unknown.isKnown)
    #expect(unknown.hash.costs == known.hash.costs && unknown.hash.text != known.hash.text)
    #expect(try !list.admits("nobody", CheapCredentials.secret("right")))
    #expect(try list.admits("alice", CheapCredentials.secret("right")))
  }

  struct Row: CustomTestStringConvertible {
    let testDescription: String
    let text: String
    let message: String
  }

  @Test(arguments: [
    Row(testDescription: "an empty file", text: "", message: "users: no user in it; pinfold passwd adds one"),
    Row(testDescription: "comments only", text: "# a\n\n", message: "users: no user in it; pinfold passwd adds one"),
    Row(
      testDescription: "no colon", text: "alice\n",
      message: "users:1:1: expected user:$argon2id$…, as pinfold passwd writes it"),
    Row(
      testDescription: "a password in the clear", text: "# x\nalice:s3cret\n",
      message: "users:2:1: behind the user's name stands no Argon2id hash, as pinfold passwd writes it"),
    Row(
      testDescription: "Windows line ends", text: "alice:\(hash)\r\n",
      message: "users:1:1: behind the user's name stands no Argon2id hash, as pinfold passwd writes it"),
    Row(
      testDescription: "no name", text: ":\(hash)\n",
      message: "users:1:1: the user's name has to have 1 to 255 bytes of UTF-8 without control characters"),
    Row(
      testDescription: "a user twice", text: "a:\(hash)\nb:\(hash)\na:\(hash)\n",
      message: "users:3:1: this user has a line already"),
    Row(
      testDescription: "several mistakes", text: "x\ny\n",
      message: """
        users:1:1: expected user:$argon2id$…, as pinfold passwd writes it
        users:2:1: expected user:$argon2id$…, as pinfold passwd writes it
        """),
  ])
  func `a bad line is named, and says nothing of what stands there`(_ row: Row) throws {
    let errors = try #require(throws: FileErrors.self) { try CheapCredentials.list(row.text) }
    #expect(errors.text == row.message)
  }

  @Test("A file of mistakes does not fill the log") func many() throws {
    let errors = try #require(throws: FileErrors.self) {
      try CheapCredentials.list(String(repeating: "x\n", count: 10_000))
    }
    #expect(errors.complaints.count == 50)
  }

  @Test("A file that everybody may read is a warning") func mode() throws {
    let bytes = Array("alice:\(Self.hash)\n".utf8)
    #expect(try CredentialList(bytes, file: "users", mode: 0o644).warnings.first?.contains("mode 0644") == true)
    #expect(try CredentialList(bytes, file: "users", mode: 0o640).warnings == [])
  }

  @Test(
    "One line is set and all others stay byte for byte",
    arguments: [
      ("", "a", "H", "a:H\n"), ("a:G\n", "a", "H", "a:H\n"), ("a:G", "a", "H", "a:H\n"),
      ("b:G", "a", "H", "b:G\na:H\n"), ("# x\r\n\nab:G\na:G\n b", "a", "H", "# x\r\n\nab:G\na:H\n b"),
      ("a:1\nb:2\na:3\n", "a", "H", "a:H\nb:2\n"), ("a:1\nb:2\n", "a", nil, "b:2\n"), ("b:2", "a", nil, nil),
      ("aa:1\n", "a", nil, nil),
    ] as [(String, String, String?, String?)])
  func setting(before: String, user: String, hash: String?, after: String?) {
    let result = CredentialText.setting(Array(user.utf8), to: hash, in: Array(before.utf8))
    #expect(result == after.map { Array($0.utf8) })
  }
}

@Suite struct GatekeeperTests {
  private static let client = IPAddress("192.0.2.1")
  private static let other = IPAddress("192.0.2.2")

  private static func onLoop(_ body: @escaping @Sendable (EventLoop) async throws -> Void) throws {
    let loop = try EventLoop()
    let failure = Mutex<(any Error)?>(nil)
    loop.spawn {
      do { try await body(loop) } catch { failure.withLock { $0 = error } }
      loop.stop()
    }
    loop.run()
    if let error = failure.withLock({ $0 }) { throw error }
  }

  private static func outcome(
    _ gatekeeper: Gatekeeper, _ user: String, _ password: String, _ client: IPAddress?, _ list: CredentialList,
    _ loop: EventLoop
  ) async -> Result<String, TunnelFailure> {
    do throws(TunnelFailure) {
      return .success(
        try await gatekeeper.admit(CheapCredentials.credentials(user, password), from: client, list, for: nil, on: loop)
      )
    } catch {
      return .failure(error)
    }
  }

  @Test("A right password opens, at once the second time; everything else is 407") func admits() throws {
    let hash = try PasswordHash(of: CheapCredentials.secret("right")).text
    let list = try CheapCredentials.list("alice:\(hash)\n")
    let gatekeeper = Gatekeeper()
    try Self.onLoop { loop in
      #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop) == .success("alice"))
      #expect(await Self.outcome(gatekeeper, "alice", "wrong", Self.client, list, loop) == .failure(.credentialsNeeded))
      #expect(await Self.outcome(gatekeeper, "bob", "right", Self.client, list, loop) == .failure(.credentialsNeeded))
      do throws(TunnelFailure) {
        _ = try await gatekeeper.admit(nil, from: Self.client, list, for: nil, on: loop)
        Issue.record("nobody was admitted")
      } catch {
        #expect(error == .credentialsNeeded)
      }
      // Without its thread nothing is hashed any more, and a password that has to be is waited for in vain.
      gatekeeper.finish()
      for _ in 0..<100 {
        let outcome = await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop)
        try #require(outcome == .success("alice"))
      }
    }
  }

  /// Would catch a user who was taken out and goes on being known.
  @Test("What one list admitted, the next one is asked again") func reload() throws {
    let before = try CheapCredentials.list("alice:\(CheapCredentials.right)\n")
    let after = try CheapCredentials.list("bob:\(CheapCredentials.right)\n")
    let gatekeeper = Gatekeeper()
    try Self.onLoop { loop in
      #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, before, loop) == .success("alice"))
      #expect(
        await Self.outcome(gatekeeper, "alice", "right", Self.client, after, loop) == .failure(.credentialsNeeded))
    }
    gatekeeper.finish()
  }

  @Test("Who guesses is told to wait, and nobody else is; who was right before still is") func guesses() throws {
    let list = try CheapCredentials.list("alice:\(CheapCredentials.right)\nbob:\(CheapCredentials.right)\n")
    let gatekeeper = Gatekeeper()
    try Self.onLoop { loop in
      #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop) == .success("alice"))
      var refusals = 0
      for number in 0..<50 {
        switch await Self.outcome(gatekeeper, "alice", "guess \(number)", Self.client, list, loop) {
        case .failure(.clientLimit(let seconds)):
          refusals += 1
          #expect((1...10).contains(seconds))
        case let outcome: #expect(outcome == .failure(.credentialsNeeded))
        }
      }
      #expect(refusals == 40)
      #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop) == .success("alice"))
      #expect(await Self.outcome(gatekeeper, "bob", "right", Self.other, list, loop) == .success("bob"))
    }
    gatekeeper.finish()
  }

  /// Would catch a guesser who is told of the right password because its owner is logged in elsewhere.
  @Test("What one network got right, another has to get right within its own attempts") func otherNetwork() throws {
    let list = try CheapCredentials.list("alice:\(CheapCredentials.right)\n")
    let gatekeeper = Gatekeeper()
    let addresses = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map { IPAddress($0) }
    try Self.onLoop { loop in
      for client in addresses.prefix(2) + [Self.client] {
        #expect(await Self.outcome(gatekeeper, "alice", "right", client, list, loop) == .success("alice"))
      }
      for guesser in [Self.other, addresses[2]] {
        for number in 0..<10 {
          #expect(
            await Self.outcome(gatekeeper, "alice", "guess \(number)", guesser, list, loop)
              == .failure(.credentialsNeeded))
        }
        let outcome = await Self.outcome(gatekeeper, "alice", "right", guesser, list, loop)
        guard case .failure(.clientLimit) = outcome else {
          Issue.record("\(outcome)")
          continue
        }
      }
    }
    gatekeeper.finish()
  }

  /// The same, while the owner's own password is being hashed.
  @Test("Another network's wait for a password is not shared") func otherNetworkPending() throws {
    let hash = try PasswordHash(of: CheapCredentials.secret("right")).text
    let list = try CheapCredentials.list("alice:\(hash)\nbob:\(CheapCredentials.right)\n")
    let gatekeeper = Gatekeeper()
    try Self.onLoop { loop in
      for number in 0..<10 { _ = await Self.outcome(gatekeeper, "bob", "guess \(number)", Self.other, list, loop) }
      async let owner = Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop)
      await Task.yield()
      let outcome = await Self.outcome(gatekeeper, "alice", "right", Self.other, list, loop)
      guard case .failure(.clientLimit) = outcome else {
        Issue.record("\(outcome)")
        _ = await owner
        return
      }
      #expect(await owner == .success("alice"))
    }
    gatekeeper.finish()
  }

  /// Would catch a program that opens many tunnels at its start and is taken for one that guesses.
  @Test("Many tunnels with one password hash it once") func singleFlight() throws {
    let hash = try PasswordHash(of: CheapCredentials.secret("right")).text
    let list = try CheapCredentials.list("alice:\(hash)\n")
    let gatekeeper = Gatekeeper()
    let start = ContinuousClock.now
    try Self.onLoop { loop in
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<200 {
          group.addTask(executorPreference: loop) {
            await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop) == .success("alice")
          }
        }
        for await isRight in group { #expect(isRight) }
      }
    }
    #expect(ContinuousClock.now - start < .seconds(5))
    gatekeeper.finish()
  }

  @Test("The queue is bounded: whoever finds it full may come again") func full() throws {
    let hash = try PasswordHash(of: CheapCredentials.secret("right")).text
    let list = try CheapCredentials.list("alice:\(hash)\n")
    let gatekeeper = Gatekeeper()
    try Self.onLoop { loop in
      var busy = 0
      await withTaskGroup(of: Bool.self) { group in
        for number in 0..<100 {
          group.addTask(executorPreference: loop) {
            let client = IPAddress("192.0.2.\(number)")
            let outcome = await Self.outcome(gatekeeper, "alice", "\(number)", client, list, loop)
            return outcome == .failure(.tunnelLimit(retryAfterSeconds: 1))
          }
        }
        for await isBusy in group where isBusy { busy += 1 }
      }
      #expect(busy >= 100 - Gatekeeper.queueLimit)
    }
    gatekeeper.finish()
  }

  /// Would catch strangers who keep users with the right password out by guessing from many addresses.
  @Test("Where a password was right before there is a place, however many strangers wait") func familiar() throws {
    let cheap = try CheapCredentials.list("alice:\(CheapCredentials.right)\n")
    let hash = try PasswordHash(of: CheapCredentials.secret("right")).text
    // As after a reload: nobody is known any more.
    let list = try CheapCredentials.list("alice:\(hash)\n")
    let gatekeeper = Gatekeeper(patience: .seconds(300))
    try Self.onLoop { loop in
      #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, cheap, loop) == .success("alice"))
      await withTaskGroup(of: Bool.self) { group in
        for number in 0..<100 {
          group.addTask(executorPreference: loop) {
            let outcome = await Self.outcome(
              gatekeeper, "alice", "\(number)", IPAddress("198.51.100.\(number)"), list, loop)
            return outcome == .failure(.tunnelLimit(retryAfterSeconds: 1))
          }
        }
        // The first who finds no place shows that they are taken.
        #expect(await group.next() == true)
        #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop) == .success("alice"))
      }
    }
    gatekeeper.finish()
  }

  /// Would catch a password that is in use all the time and is asked for in the middle of it.
  @Test("A right password is remembered from its last use on") func renewed() throws {
    let list = try CheapCredentials.list("alice:\(CheapCredentials.right)\n")
    let gatekeeper = Gatekeeper(memory: .seconds(4))
    try Self.onLoop { loop in
      #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop) == .success("alice"))
      // From here on, for six seconds, what is not remembered is refused.
      let start = loop.now
      for number in 0..<10 { _ = await Self.outcome(gatekeeper, "alice", "guess \(number)", Self.client, list, loop) }
      while loop.now < start.advanced(by: .seconds(5)) {
        #expect(await Self.outcome(gatekeeper, "alice", "right", Self.client, list, loop) == .success("alice"))
        await loop.sleep(for: .milliseconds(100))
      }
    }
    gatekeeper.finish()
  }

  /// Would catch a process that stays for seconds to hash what nobody waits for.
  @Test("The end waits for no password but the one that is being hashed") func end() throws {
    let hash = try PasswordHash(of: CheapCredentials.secret("right")).text
    let list = try CheapCredentials.list("alice:\(hash)\n")
    let gatekeeper = Gatekeeper(patience: .seconds(300))
    try Self.onLoop { loop in
      await withTaskGroup(of: Bool.self) { group in
        for number in 0..<40 {
          group.addTask(executorPreference: loop) {
            let client = IPAddress("198.51.100.\(number)")
            return await Self.outcome(gatekeeper, "alice", "right", client, list, loop) == .success("alice")
          }
        }
        #expect(await group.next() == true)
        gatekeeper.finish()
        var hashed = 0
        for await isRight in group where isRight { hashed += 1 }
        #expect(hashed < 39)
      }
    }
  }
}
