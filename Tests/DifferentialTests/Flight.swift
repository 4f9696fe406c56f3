/// A server's flight of TLS 1.0–1.2 in parts that can be put together otherwise.
struct Flight {
  struct Message {
    var type: UInt8
    var body: [UInt8]
    /// What its length field says, if not the truth.
    var stated: Int?

    var bytes: [UInt8] { [type] + Wire.number(stated ?? body.count, 3) + body }
  }

  /// Bytes of a record that carries something else, before the message of this number.
  var records: [(before: Int, bytes: [UInt8])] = []
  var messages: [Message] = []
  var version: [UInt8]

  /// Takes apart what an honest server sent.
  init(_ bytes: [UInt8]) {
    version = Array(bytes.dropFirst().prefix(2))
    var content: [UInt8] = []
    var rest = bytes[...]
    while rest.count >= 5 {
      let count = Wire.number(rest.dropFirst(3), 2)
      if rest.first == 22 { content += rest.dropFirst(5).prefix(count) }
      rest = rest.dropFirst(5 + count)
    }
    var left = content[...]
    while left.count >= 4 {
      let count = Wire.number(left.dropFirst(), 3)
      messages.append(Message(type: left[left.startIndex], body: Array(left.dropFirst(4).prefix(count))))
      left = left.dropFirst(4 + count)
    }
  }

  func index(of type: UInt8) -> Int? { messages.firstIndex { $0.type == type } }

  /// The certificates in the Certificate message.
  var certificates: [[UInt8]] {
    get {
      guard let index = index(of: 11) else { return [] }
      var rest = messages[index].body.dropFirst(3)
      var list: [[UInt8]] = []
      while rest.count >= 3 {
        let count = Wire.number(rest, 3)
        list.append(Array(rest.dropFirst(3).prefix(count)))
        rest = rest.dropFirst(3 + count)
      }
      return list
    }
    set {
      guard let index = index(of: 11) else { return }
      messages[index].body = Wire.vector(3, newValue.flatMap { Wire.vector(3, $0) })
    }
  }

  /// The extensions of the ServerHello.
  var extensions: [[UInt8]] {
    get {
      guard let index = index(of: 2) else { return [] }
      var rest = messages[index].body.dropFirst(extensionsStart + 2)
      var list: [[UInt8]] = []
      while rest.count >= 4 {
        let count = 4 + Wire.number(rest.dropFirst(2), 2)
        list.append(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
      }
      return list
    }
    set {
      guard let index = index(of: 2) else { return }
      messages[index].body =
        Array(messages[index].body.prefix(extensionsStart)) + Wire.vector(2, newValue.flatMap { $0 })
    }
  }

  private var extensionsStart: Int {
    guard let index = index(of: 2), messages[index].body.count > 34 else { return 0 }
    return 34 + 1 + Int(messages[index].body[34]) + 3
  }

  /// How messages are laid into records.
  enum Framing: CaseIterable { case asMessages, together, single, small, random }

  /// The bytes on the wire.
  func bytes(_ framing: Framing, _ random: inout Random) -> [UInt8] {
    var result: [UInt8] = []
    var waiting: [UInt8] = []
    func flush(_ random: inout Random) {
      while !waiting.isEmpty {
        let count =
          switch framing {
          case .asMessages, .together: 16384
          case .single: 1
          case .small: 1 + random.next(below: 40)
          case .random: 1 + random.next(below: 700)
          }
        result += Wire.record(22, Array(waiting.prefix(count)), version: version)
        waiting.removeFirst(min(count, waiting.count))
      }
    }
    for (index, message) in messages.enumerated() {
      for record in records where record.before == index {
        flush(&random)
        result += record.bytes
      }
      waiting += message.bytes
      if framing == .asMessages { flush(&random) }
    }
    flush(&random)
    return result
  }
}
