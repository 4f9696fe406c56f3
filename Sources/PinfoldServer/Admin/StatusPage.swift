/// `/`: the status for a person with a browser. No script, nothing from elsewhere.
struct StatusPage {
  private let status: Status

  init(_ status: Status) { self.status = status }

  /// The page in UTF-8.
  var html: [UInt8] {
    var rows: [(String, String)] = [
      ("Version", status.version), ("State", status.state), ("Started", status.startedAt),
      ("Listening on", status.listen.joined(separator: ", ")), ("Workers", "\(status.workers)"),
      ("Open tunnels", "\(status.tunnels.active) of \(status.tunnels.limit)"), ("Unpinned hosts", status.unpinned),
    ]
    if let detail = status.detail { rows.insert(("Why", detail), at: 2) }
    if let policy = status.policy {
      rows.append(("Policy", "version \(policy.version), \(policy.rules) rules, expires \(policy.expiresAt)"))
    }
    if let reload = status.lastReload {
      rows.append(("Last reload", "\(reload.at): \(reload.error ?? reload.result)"))
    }
    for service in status.pinServices {
      let tries = service.urls.map { "\($0.url): \($0.lastError ?? $0.lastResult ?? "not asked yet")" }
      rows.append(("Pins of \(service.domains.joined(separator: ", "))", tries.joined(separator: "; ")))
    }
    if let audit = status.audit {
      rows.append(("Audit", "\(audit.written) written, \(audit.lost) lost" + (audit.error.map { ": \($0)" } ?? "")))
    }
    rows += status.breaker?.rows ?? []
    let table = rows.map { "<tr><th>\(Self.escaped($0.0))</th><td>\(Self.escaped($0.1))</td></tr>\n" }.joined()
    let page = """
      <!doctype html>
      <html lang="en"><head><meta charset="utf-8"><title>Pinfold</title>
      <style>body{font:16px/1.5 system-ui,sans-serif;margin:2em;max-width:50em}
      th{text-align:left;padding-right:2em;vertical-align:top}</style></head>
      <body><h1>Pinfold</h1>
      <table>
      \(table)</table>
      <p><a href="/metrics">metrics</a> · <a href="/healthz">healthz</a> · <a href="/readyz">readyz</a>
      · <a href="/status">status (JSON)</a></p>
      </body></html>

      """
    return Array(page.utf8)
  }

  private static func escaped(_ text: String) -> String {
    var result = ""
    // Not by characters: a mark that joins with `<` makes one of both, and a browser sees two.
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
