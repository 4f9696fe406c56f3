/// One thing done to a flight on its way.
enum Mutation: CaseIterable {
  case nothing, changeByte, insertByte, removeByte, changeRawByte, removeRawBytes
  case doubleMessage, dropMessage, swapMessages, lieAboutLength, emptyMessage, appendToMessage
  case doubleExtension, foreignExtension, dropExtension, swapExtensions
  case swapCertificates, doubleLeaf, foreignLeaf, appendForeign, emptyCertificate, dropLeaf
  case lieAboutList, lieAboutCertificate, appendToCertificate, secondCertificates
  case status, request, helloRequest, finished
  case warning, closing, cipherChange, emptyRecord, applicationData, recordVersion, helloVersion

  /// Applies to parts. Those that need bytes on the wire do nothing here, see `applyRaw`.
  func apply(to flight: inout Flight, foreign: [UInt8], _ random: inout Random) {
    guard !flight.messages.isEmpty else { return }
    let index = random.next(below: flight.messages.count)
    switch self {
    case .nothing, .changeRawByte, .removeRawBytes: break
    case .changeByte, .insertByte, .removeByte, .lieAboutLength, .emptyMessage, .appendToMessage:
      change(&flight.messages[index], &random)
    case .doubleMessage:
      flight.messages.insert(flight.messages[index], at: random.next(below: flight.messages.count + 1))
    case .dropMessage: flight.messages.remove(at: index)
    case .swapMessages: flight.messages.swapAt(index, random.next(below: flight.messages.count))
    case .doubleExtension, .foreignExtension, .dropExtension, .swapExtensions: changeExtensions(&flight, &random)
    case .swapCertificates, .doubleLeaf, .foreignLeaf, .appendForeign, .emptyCertificate, .dropLeaf,
      .appendToCertificate:
      changeCertificates(&flight, foreign, &random)
    case .lieAboutList, .lieAboutCertificate:
      guard let certificate = flight.index(of: 11) else { return }
      let place = self == .lieAboutList ? 2 : 5
      guard flight.messages[certificate].body.count > place else { return }
      flight.messages[certificate].body[place] &+= UInt8(random.pick([1, 3, 254, 255]))
    case .secondCertificates: insert(11, Wire.vector(3, Wire.vector(3, foreign)), &flight, &random)
    case .status: insert(22, [1] + Wire.vector(3, [0x30, 3, 10, 1, 0]), &flight, &random)
    case .request: insert(13, [1, 64, 0, 4, 4, 3, 8, 4, 0, 0], &flight, &random)
    case .helloRequest: insert(0, [], &flight, &random)
    case .finished: insert(20, Array(repeating: 5, count: 12), &flight, &random)
    case .warning:
      flight.records.append((index, Wire.record(21, [1, random.pick([0, 41, 90, 112])], version: flight.version)))
    case .closing: flight.records.append((index, Wire.record(21, [2, 40], version: flight.version)))
    case .cipherChange: flight.records.append((index, Wire.record(20, [1], version: flight.version)))
    case .emptyRecord: flight.records.append((index, Wire.record(22, [], version: flight.version)))
    case .applicationData: flight.records.append((index, Wire.record(23, [7], version: flight.version)))
    case .recordVersion: flight.version = random.pick([[3, 0], [3, 1], [3, 2], [3, 3], [3, 4], [2, 0]])
    case .helloVersion:
      guard let hello = flight.index(of: 2), flight.messages[hello].body.count > 1 else { return }
      flight.messages[hello].body[1] = random.pick([0, 1, 2, 3, 4])
    }
  }

  private func change(_ message: inout Flight.Message, _ random: inout Random) {
    let place = random.next(below: message.body.count)
    switch self {
    case .changeByte where !message.body.isEmpty: message.body[place] ^= 1 << UInt8(random.next(below: 8))
    case .insertByte: message.body.insert(random.byte(), at: place)
    case .removeByte where !message.body.isEmpty: message.body.remove(at: place)
    case .lieAboutLength: message.stated = max(0, message.body.count + random.pick([-4, -1, 1, 4, 256]))
    case .emptyMessage: message.body = []
    case .appendToMessage: message.body += [random.byte()]
    default: break
    }
  }

  private func changeExtensions(_ flight: inout Flight, _ random: inout Random) {
    var list = flight.extensions
    switch self {
    case .doubleExtension where !list.isEmpty: list.append(random.pick(list))
    case .foreignExtension:
      list.append(
        random.pick([
          [0, 5, 0, 0], [0, 16, 0, 11, 0, 9, 8] + Array("http/1.1".utf8), [0, 35, 0, 0], [0, 23, 0, 0], [0, 22, 0, 0],
          [0, 0, 0, 0], [0, 13, 0, 0], [0, 43, 0, 2, 3, 3], [0, 43, 0, 2, 3, 4], [0, 20, 0, 1, 2], [0x0a, 0x0a, 0, 0],
          [0, 10, 0, 4, 0, 2, 0, 23], [255, 1, 0, 1, 0], [0, 11, 0, 2, 1, 0],
        ]))
    case .dropExtension where !list.isEmpty: list.remove(at: random.next(below: list.count))
    case .swapExtensions where !list.isEmpty: list.swapAt(0, random.next(below: list.count))
    default: return
    }
    flight.extensions = list
  }

  private func changeCertificates(_ flight: inout Flight, _ foreign: [UInt8], _ random: inout Random) {
    var list = flight.certificates
    guard let leaf = list.first else { return }
    switch self {
    case .swapCertificates: list.swapAt(0, list.count - 1)
    case .doubleLeaf: list.insert(leaf, at: random.next(below: list.count + 1))
    case .foreignLeaf: list.insert(foreign, at: 0)
    case .appendForeign: list.append(foreign)
    case .emptyCertificate: list.insert([], at: random.next(below: list.count + 1))
    case .dropLeaf: list.removeFirst()
    default:
      let index = random.next(below: list.count)
      list[index] += random.pick([[0], list[index], foreign])
    }
    flight.certificates = list
  }

  private func insert(_ type: UInt8, _ body: [UInt8], _ flight: inout Flight, _ random: inout Random) {
    let place = 1 + random.next(below: flight.messages.count)
    flight.messages.insert(Flight.Message(type: type, body: body, stated: nil), at: min(place, flight.messages.count))
  }

  /// Applies to the bytes on the wire, wherever they are.
  func applyRaw(to bytes: inout [UInt8], _ random: inout Random) {
    guard !bytes.isEmpty else { return }
    let place = random.next(below: bytes.count)
    switch self {
    case .changeRawByte: bytes[place] = random.byte()
    case .removeRawBytes: bytes.removeSubrange(place..<min(bytes.count, place + 1 + random.next(below: 8)))
    default: break
    }
  }
}
