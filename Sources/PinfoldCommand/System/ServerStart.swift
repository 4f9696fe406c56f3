import PinfoldConfig
import PinfoldLoop
import PinfoldServer
import PinfoldTelemetry

extension Server {
  /// Loads the configuration, takes the state directory, binds, and serves from here on; `serve` then waits for the end.
  ///
  /// Throws `config` for every mistake of the configuration, `failed` for what the system denies.
  static func start(configurationFile path: String, environment: [String: String]) throws(CommandFailure) -> Server {
    // Before the rules are read: how many tunnels there may be follows from it. Many systems hand out 1,024 and allow
    // much more to those who ask.
    Descriptors.raiseLimit()
    let loader = RulesLoader(path: path, environment: environment)
    let configuration = try reading { () throws(FileErrors) in try loader.configuration() }
    let lock: StateLock
    do throws(StartError) {
      lock = try StateLock(configuration.stateDirectory)
    } catch {
      throw CommandFailure(.failed, error.text)
    }
    let loaded = try reading { () throws(FileErrors) in try loader.load(configuration) }
    let section = configuration.log
    let log: Logger
    do throws(IOError) {
      log = try Logger(level: Severity(section.level), format: LineFormat(section.format))
    } catch {
      throw CommandFailure(.failed, "cannot start: \(error.text)")
    }
    do throws(StartError) {
      return try Server(loader, loaded, lock: lock, log: log)
    } catch {
      log.finish()
      throw CommandFailure(.failed, error.text)
    }
  }

  private static func reading<Value>(_ work: () throws(FileErrors) -> Value) throws(CommandFailure) -> Value {
    do throws(FileErrors) { return try work() } catch { throw CommandFailure(.config, error.text) }
  }

  /// Answers signals until the server has stopped, SIGHUP with a reload or, at a terminal that it ends with, as SIGTERM.
  /// Blocks the calling thread.
  func serve(endsWithTerminal: Bool = false) throws(CommandFailure) {
    do throws(IOError) {
      try runUntilStopped(endsWithTerminal: endsWithTerminal)
    } catch {
      throw CommandFailure(.failed, "cannot serve: \(error.text)")
    }
  }
}
