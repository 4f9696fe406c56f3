import Synchronization

/// Makes probes, keeping the contexts of those that came before: setting one up costs more than the handshake's
/// own bookkeeping.
///
/// Sendable: contexts are kept behind a `Mutex`, held for a look-up only.
package final class ProbeClient: Sendable {
  /// Contexts kept at least; an application stack has one or two profiles.
  private static let capacity = 64

  private let contexts = Mutex(BoundedCache<ProbeOffer.Profile, ProbeContext>(capacity: capacity))

  /// Keeps nothing yet.
  package init() {}

  /// A probe that has not started. Throws when OpenSSL can say nothing of the offer, or is out of means.
  package func session(_ offer: ProbeOffer) throws(TLSError) -> ProbeSession {
    if let context = contexts.withLock({ $0.value(for: offer.profile) }) {
      return try ProbeSession(context, offer)
    }
    let context = try ProbeContext(offer.profile)
    contexts.withLock { $0.insert(context, for: offer.profile) }
    return try ProbeSession(context, offer)
  }
}
