package import PinfoldCrypto

extension SealedCache {
  /// The cache of a state directory that is there already, for commands beside a running Pinfold: nothing is made. Throws
  /// when its key cannot be read.
  package convenience init(existingIn stateDirectory: String, keyFile: String?) throws(CryptoError) {
    var warnings: [String] = []
    let path = keyFile ?? stateDirectory + "/cache.key"
    try self.init(directory: Self.directory(in: stateDirectory), key: try SealingKey(path: path, warnings: &warnings))
  }
}
