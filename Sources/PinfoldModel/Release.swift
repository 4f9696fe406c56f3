/// What this build calls itself.
package enum Release {
  /// Semantic version (semver.org 2.0.0): `pinfold version`, the `version` label of `pinfold_build_info`, the admin
  /// port's status. CHANGELOG.md has a section of the same name once it is released.
  package static let version = "0.1.0"
}
