/// What the URLs of `policy.bundles` brought so far: the last body of each, as received and not believed.
package struct FetchedBundles: Sendable {
  private struct Entry {
    var bytes: [UInt8]
    var etag: String?
    /// Whether the sealed cache has these very bytes.
    var isCached: Bool
  }

  private var entries: [String: Entry] = [:]

  /// Nothing yet.
  package init() {}

  /// What was fetched for one of `urls`, and forget the rest.
  init(_ previous: FetchedBundles, keeping urls: [String]) {
    entries = previous.entries.filter { urls.contains($0.key) }
  }

  /// The last body of a URL.
  func bytes(of url: String) -> [UInt8]? { entries[url]?.bytes }

  /// What its server called the last body, for a conditional request; `nil` when it did not, or from the cache.
  package func etag(of url: String) -> String? { entries[url]?.etag }

  /// A new body from the server.
  package mutating func receive(_ bytes: [UInt8], etag: String?, from url: String) {
    let isKnown = entries[url].map { $0.isCached && $0.bytes == bytes } ?? false
    entries[url] = Entry(bytes: bytes, etag: etag, isCached: isKnown)
  }

  /// A body from the cache, where the server has sent none yet.
  mutating func restore(_ bytes: [UInt8], of url: String) {
    if entries[url] == nil { entries[url] = Entry(bytes: bytes, etag: nil, isCached: true) }
  }

  /// The body of a URL that the cache does not have.
  func uncached(_ url: String) -> [UInt8]? {
    guard let entry = entries[url], !entry.isCached else { return nil }
    return entry.bytes
  }

  /// Has the next request ask for the whole body: what is refused may have been called what the right one is called.
  mutating func forgetTag(of url: String) { entries[url]?.etag = nil }

  mutating func noteCached(_ url: String) { entries[url]?.isCached = true }
}
