import PinfoldLoop
import PinfoldServer
import Synchronization

/// The tries of the demonstration, one after the other, on a thread of their own: the main one answers signals.
final class DemoTour: Sendable {
  private let console: Console
  private let text: DemoText
  private let curl: String
  private let admin: AdminClient
  private let outcome = Mutex<Bool?>(nil)

  init(console: Console, text: DemoText, curl: String, admin: AdminClient) {
    self.console = console
    self.text = text
    self.curl = curl
    self.admin = admin
  }

  /// Whether every try came out as it should; `nil` when the tour was cut short by the reader's Ctrl-C.
  var isGood: Bool? { outcome.withLock { $0 } }

  /// Tries all sites, then calls `finished`, unless the proxy was told to end meanwhile.
  func run(finished: () -> Void) {
    console.line(text.introduction)
    var isGood = true
    for site in DemoSite.all {
      for line in text.heading(site) { console.line(line) }
      do throws(CommandFailure) {
        let check = try DemoCheck(site, curl: curl, text, admin: admin)
        guard isServing else { return }
        for line in check.lines { console.line(line) }
        isGood = isGood && check.isGood
      } catch {
        guard isServing else { return }
        console.complain(error.message)
        isGood = false
      }
    }
    outcome.withLock { $0 = isGood }
    console.line("")
    finished()
  }

  /// Whether nobody told the proxy to end: `/readyz` says so while it drains, and nobody answers afterwards.
  private var isServing: Bool { (try? admin.get("/readyz"))?.code == 200 }
}
