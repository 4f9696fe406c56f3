/// What the demonstration tells its reader.
struct DemoText {
  let port: UInt16
  let adminPort: UInt16
  /// PEM file of the throw-away authority.
  let caFile: String
  /// The configuration that is served.
  let configFile: String
  /// How this program was called, so that it can be called again from where it was called.
  var program = "pinfold"

  var proxy: String { "http://127.0.0.1:\(port)" }

  var introduction: String {
    """
    Pinfold on 127.0.0.1:\(port), admin port 127.0.0.1:\(adminPort). A throw-away authority issued a genuine
    certificate to each of \(DemoSite.all.count) servers. The policy pins the right key for two of them, and for two
    another key than the one they have, as if somebody else had obtained a certificate for the name.
    """
  }

  /// What is tried next, and what a person would type for it.
  func heading(_ site: DemoSite) -> [String] {
    [
      "", "\(site.name), \(site.versionText), \(site.isPinnedRightly ? "the pinned key" : "not the pinned key")",
      "  $ curl --proxy \(proxy) --cacert \(caFile) https://\(site.name)/",
    ]
  }

  /// The arguments that have curl fetch the page through the proxy, whatever the environment and ~/.curlrc say.
  func curlArguments(_ site: DemoSite) -> [String] {
    [
      "-q", "-sS", "--max-time", "20", "--noproxy", "", "--proxy", proxy, "--cacert", caFile, "https://\(site.name)/",
    ]
  }

  /// The commands to try in a second terminal.
  var suggestions: String {
    let python = "import urllib.request as u; print(u.urlopen('https://good.pinfold.test/').read().decode())"
    let host = "good.pinfold.test"
    let node = """
      require('http').request({host:'127.0.0.1',port:\(port),method:'CONNECT',path:'\(host):443',\
      headers:{Host:'\(host):443'}}).on('connect',(_,socket)=>require('https').get({host:'\(host)',\
      createConnection:()=>require('tls').connect({socket,servername:'\(host)'})},\
      r=>r.pipe(process.stdout))).end()
      """
    let directory = caFile.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    let java = """
      class Get{public static void main(String[] a)throws Exception\
      {new java.net.URL(a[0]).openStream().transferTo(System.out);}}
      """
    return """
      Try it in a second terminal, with good, good-tls12, wrong or wrong-tls12 in front of .pinfold.test:

        curl --proxy \(proxy) --cacert \(caFile) https://good.pinfold.test/
        curl --proxy \(proxy) --cacert \(caFile) https://wrong.pinfold.test/
        https_proxy=\(proxy) wget -qO- --ca-certificate=\(caFile) https://good.pinfold.test/
        HTTPS_PROXY=\(proxy) SSL_CERT_FILE=\(caFile) python3 -c "\(python)"
        NODE_EXTRA_CA_CERTS=\(caFile) node -e "\(node)"
        keytool -importcert -noprompt -alias demo -file \(caFile) -keystore \(directory)/ca.p12 -storepass pinfold
        echo '\(java)' > \(directory)/Get.java
        java -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=\(port) -Djavax.net.ssl.trustStore=\(directory)/ca.p12 \
      -Djavax.net.ssl.trustStorePassword=pinfold \(directory)/Get.java https://good.pinfold.test/

      A host that no rule names, and what the policy thinks of one:

        curl --proxy \(proxy) https://example.com/
        \(program) explain -c \(configFile) wrong.pinfold.test
        \(program) check -c \(configFile)

      What Pinfold counted and how it is:

        curl http://127.0.0.1:\(adminPort)/metrics
        \(program) status --admin 127.0.0.1:\(adminPort)

      Ctrl-C ends the demonstration and removes its files.
      """
  }
}
