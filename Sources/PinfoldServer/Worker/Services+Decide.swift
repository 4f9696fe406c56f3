import PinfoldModel
import PinfoldPolicy

extension Services {
  /// What is to happen with a tunnel to this authority, asked now: the rules first, then whatever amends their decision.
  ///
  /// Answers at once, from memory. Asked again behind the handshake when something may have changed meanwhile.
  func decide(_ authority: Authority, user: String? = nil, _ rules: Rules) -> Decision {
    rules.decide(authority, user: user)
  }
}
