import Foundation
import Synchronization

/// An attacker on the path between Pinfold and a genuine server, who also runs a server of his own with a certificate
/// that a trusted authority issued for the same name and another key. Each connection goes to one of the two.
///
/// He is given more than a real one has: tunnels come one after another, so he knows for certain which two connections
/// belong together and in which order they were dialled.
final class Interceptor: Sendable {
  enum Plan: String, CaseIterable, Sendable {
    case everyConnection = "every connection"
    case firstDialled = "the first dialled of each pair"
    case secondDialled = "the second dialled of each pair"
    case firstHello = "the one whose hello comes first"
    case atRandom = "one of each pair at random"
    case resumable = "the one whose session the genuine server accepts"
    /// Serves the first dialled honestly and keeps the second waiting, to see whether the first ends by itself: the app's
    /// cannot, so then the second is the app's. Else he stays honest.
    case patient = "the second once the first has ended by itself"
    /// Keeps the second connection of a tunnel's first pair waiting, so that another one is drawn, and takes of that one
    /// what has a hello that he has seen before.
    case repeated = "the one whose hello comes again in a pair drawn anew"
    /// The same, but takes the hello of whom he kept waiting if the other one took leave with words, else the other one's.
    case farewell = "the one that did not take leave when its pair was given up"
    /// Answers the first connection of a tunnel's first pair with one byte, which commits him to nothing, and the second
    /// not at all; of the pair drawn anew he takes the hello that was not answered.
    case teasing = "the one that was not answered when the other one was, with a byte"
    /// Stays honest, and holds a part of each answer back for a while to look how much of the rest lies unread, as an
    /// attacker sees by the window.
    case weighing = "none, but looks how much of each lies unread"
    /// The same within milliseconds.
    case weighingAtOnce = "none, but looks at once how much of each lies unread"
    case halfOfAll = "each connection with even odds"
  }

  /// What the connections of one tunnel share.
  private final class Pair: Sendable {
    let drawn = Bool.random()
    let hellos = Atomic<Int>(0)
    let hasFirstEnded = Atomic<Bool>(false)
    /// Whether it is a tunnel's second pair, if each tunnel has two.
    let isDrawnAnew: Bool

    init(isDrawnAnew: Bool) { self.isDrawnAnew = isDrawnAnew }

    func endsFirst(within seconds: Double) -> Bool {
      let waited: Void? = try? Wait.untilTrue("the end of the first connection", seconds: seconds) {
        hasFirstEnded.load(ordering: .relaxed)
      }
      return waited != nil
    }
  }

  private struct Book {
    var connections = 0
    var pairs: [Pair] = []
    var hellos: Set<[UInt8]> = []
    /// The hello of the connection served last, or that was left without an answer, and whether anything came behind it.
    var served: [UInt8] = []
    var hasSpoken = false
  }

  private let listener: Listener
  private let intercepted: Recount
  var port: UInt16 { listener.port }
  /// Connections given to the attacker's server.
  var interceptions: Int { intercepted.count.load(ordering: .relaxed) }
  var connections: Int { listener.connectionCount }
  /// Connections on which bytes lay unread while others were held back.
  var unread: Int { intercepted.unread.load(ordering: .relaxed) }

  private final class Recount: Sendable {
    let count = Atomic<Int>(0)
    let unread = Atomic<Int>(0)
    let book = Mutex(Book())
  }

  init(_ plan: Plan, genuine: UInt16, evil: UInt16) throws {
    let recount = Recount()
    intercepted = recount
    listener = try Listener { near in
      let (isFirst, pair) = recount.book.withLock { book in
        let isFirst = book.connections.isMultiple(of: 2)
        book.connections += 1
        if isFirst { book.pairs.append(Pair(isDrawnAnew: !book.pairs.count.isMultiple(of: 2))) }
        return (isFirst, book.pairs[book.pairs.count - 1])
      }
      let hello = Self.readHello(near)
      guard !hello.isEmpty else { return near.shutDown() }
      let isKnown = recount.book.withLock { !$0.hellos.insert(hello).inserted }
      if plan == .repeated || plan == .farewell, !pair.isDrawnAnew, !isFirst {
        while case .bytes = near.receive() {}
        return near.shutDown()
      }
      if plan == .teasing, !pair.isDrawnAnew {
        if isFirst { near.send([22]) } else { recount.book.withLock { $0.served = hello } }
        while case .bytes = near.receive() {}
        return near.shutDown()
      }
      if plan == .weighing || plan == .weighingAtOnce {
        let pause = plan == .weighing ? 0.05 : 0.005
        return Self.weigh(near, hello, genuine, isFirst: isFirst, pause: pause, recount.unread)
      }
      let takes: Bool
      switch plan {
      case .everyConnection: takes = true
      case .firstDialled: takes = isFirst
      case .secondDialled: takes = !isFirst
      case .firstHello: takes = pair.hellos.add(1, ordering: .relaxed).oldValue == 0
      case .atRandom: takes = pair.drawn == isFirst
      case .resumable: takes = Self.resumes(hello, at: genuine)
      case .patient: takes = !isFirst && pair.endsFirst(within: Self.patience)
      case .repeated: takes = pair.isDrawnAnew && isKnown
      case .farewell:
        // Until the end of the pair before has been seen.
        Thread.sleep(forTimeInterval: 0.08)
        takes = pair.isDrawnAnew && recount.book.withLock { ($0.served == hello) != $0.hasSpoken }
      case .teasing: takes = pair.isDrawnAnew && recount.book.withLock { $0.served == hello }
      case .halfOfAll, .weighing, .weighingAtOnce: takes = Bool.random()
      }
      if takes { recount.count.add(1, ordering: .relaxed) }
      guard let far = try? Socket.connect(to: takes ? evil : genuine) else { return near.shutDown() }
      far.send(hello)
      let connection = Tap.Connection()
      Tap.join(near, far, connection)
      if plan == .farewell, !pair.isDrawnAnew {
        recount.book.withLock { ($0.served, $0.hasSpoken) = (hello, connection.forward.count > 0) }
      }
      if isFirst { pair.hasFirstEnded.store(true, ordering: .relaxed) }
    }
  }

  /// Seconds the patient one keeps a connection waiting: less than a slow server would take.
  private static let patience = 0.15

  /// The first connection gets its ServerHello, after a pause all but the last bytes of the flight, and these at last; the
  /// second one a byte, and the rest when the first one has all. What lies unread two pauses later, and one more pause
  /// later still, is counted.
  private static func weigh(
    _ near: Socket, _ hello: [UInt8], _ genuine: UInt16, isFirst: Bool, pause: Double, _ unread: borrowing Atomic<Int>
  ) {
    guard let far = try? Socket.connect(to: genuine), far.send(hello), case .bytes(let flight) = far.receive(),
      let record = TLSRecords.firstLength(flight), record < flight.count - 20
    else { return near.shutDown() }
    if isFirst {
      near.send(Array(flight[..<record]))
      Thread.sleep(forTimeInterval: pause)
      near.send(Array(flight[record..<(flight.count - 20)]))
      Thread.sleep(forTimeInterval: 2 * pause)
      let looks = (0..<2).lazy.map { look in
        if look > 0 { Thread.sleep(forTimeInterval: pause) }
        return bytesUnread(behind: near.localPort)
      }
      if looks.allSatisfy({ $0 > 0 }) { unread.add(1, ordering: .relaxed) }
      near.send(Array(flight.suffix(20)))
    } else {
      near.send([flight[0]])
      Thread.sleep(forTimeInterval: pause == 0.05 ? 0.25 : 0.06)
      near.send(Array(flight.dropFirst()))
    }
    Tap.join(near, far, Tap.Connection())
  }

  /// What the other sides of connections to this port, or the one of them at `other`, have not read: rx_queue of proc_net(5).
  static func bytesUnread(behind port: UInt16, from other: UInt16? = nil) -> Int {
    // To its end: `String(contentsOfFile:)` reads but the first part of a file whose size the system does not know.
    let data = (try? FileHandle(forReadingAtPath: "/proc/net/tcp")?.readToEnd()) ?? Data()
    let table = String(decoding: data, as: UTF8.self)
    return table.split(separator: "\n").dropFirst().reduce(0) { sum, line in
      let fields = line.split(separator: " ")
      guard fields.count > 4, fields[2].hasSuffix(":" + String(format: "%04X", Int(port))),
        other.map({ fields[1].hasSuffix(":" + String(format: "%04X", Int($0))) }) ?? true,
        let queue = fields[4].split(separator: ":").last
      else { return sum }
      return sum + (Int(queue, radix: 16) ?? 0)
    }
  }

  private static func readHello(_ socket: Socket) -> [UInt8] {
    var bytes: [UInt8] = []
    while TLSRecords.firstLength(bytes).map({ bytes.count < $0 }) ?? true {
      guard case .bytes(let more) = socket.receive() else { return [] }
      bytes += more
    }
    return bytes
  }

  /// Replays the hello to the server and looks whether its ServerHello selects the offered session: extension 41,
  /// pre_shared_key (RFC 8446 §4.2.11).
  private static func resumes(_ hello: [UInt8], at port: UInt16) -> Bool {
    guard let socket = try? Socket.connect(to: port) else { return false }
    socket.send(hello)
    let answer = readHello(socket)
    // Header, message header, version, random; then the session id with its length, suite, compression, lengths.
    let session = 5 + 4 + 2 + 32
    guard answer.count > session, answer[0] == 22, answer[5] == 2, let end = TLSRecords.firstLength(answer) else {
      return false
    }
    var position = session + 1 + Int(answer[session]) + 2 + 1 + 2
    while position + 4 <= end {
      if answer[position] == 0, answer[position + 1] == 41 { return true }
      position += 4 + (Int(answer[position + 2]) << 8 | Int(answer[position + 3]))
    }
    return false
  }
}
