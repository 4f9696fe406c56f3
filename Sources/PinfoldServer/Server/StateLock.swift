import Glibc
import PinfoldCrypto

/// The state directory, which one running proxy at a time has: each writes down what it remembers, and the older memory of
/// one would take the place of what the other has accepted.
///
/// Held as long as this value is. Commands take none: they only look, or write single records that a running proxy takes.
package struct StateLock: Sendable {
  /// The file's name in the state directory.
  static let fileName = "run.lock"
  /// How long the process before may take to leave.
  package static let patience = Duration.seconds(5)
  /// How often is tried meanwhile, in microseconds.
  private static let step: UInt32 = 50_000

  private let lock: FileLock?
  /// Why no lock is to be had, where none is: a disk that is read-only, a file system that knows none.
  package let warning: String?

  /// Takes the directory, which is made (mode 0700) where it is missing. Waits for a process that has it, `patience` at
  /// most, and throws `stateInUse` then.
  package init(_ directory: String, patience: Duration = Self.patience) throws(StartError) {
    let end = ContinuousClock.now + patience
    do throws(FileError) {
      try PrivateFile.makeDirectory(directory)
      while true {
        if let lock = try FileLock("\(directory)/\(Self.fileName)") {
          (self.lock, warning) = (lock, nil)
          return
        }
        guard ContinuousClock.now < end else { break }
        usleep(Self.step)
      }
    } catch {
      // What else is kept there is told of as it is tried, and Pinfold goes on from memory.
      (lock, warning) = (nil, "\(error.description); nothing keeps another Pinfold from using it")
      return
    }
    throw .stateInUse(directory: directory)
  }
}
