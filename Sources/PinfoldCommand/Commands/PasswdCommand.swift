import Glibc
import PinfoldCrypto
import PinfoldServer

/// `pinfold passwd`: users of the proxy.
enum PasswdCommand: Subcommand {
  static let file = OptionSyntax(
    long: "--file", short: "-f", value: "FILE", help: "the file of access.credentials_file; made where there is none")
  static let delete = OptionSyntax(long: "--delete", help: "take the user out instead; no password is read")

  static let syntax = CommandSyntax(
    name: "passwd", summary: "Set the password of a user of the proxy",
    usage: ["-f FILE USER", "-f FILE --delete USER"],
    options: [file, delete],
    operands: [
      OperandSyntax(name: "USER", help: "name of the user: no colon, no control character, at most\n255 bytes")
    ],
    details: """
      The password is one line of standard input; at a terminal it is asked for twice and not shown. The
      file gets a line user:$argon2id$… (mode 0600 when it is new) and is replaced in one step; all other
      lines stay as they are. A running proxy takes the change with SIGHUP.

      Example:
        pinfold passwd -f /etc/pinfold/users alice
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let path = resolved(try arguments.required(file, of: syntax))
    let user = Array(arguments.operands[0].utf8)
    guard CredentialText.isUser(user) else {
      throw .usage(
        "passwd: \(quoted(arguments.operands[0])) cannot be a user: no colon, no control character, no # in front, "
          + "1 to 255 bytes", help: "pinfold passwd --help")
    }
    let before = try contents(path)
    var hash: String?
    if !arguments.has(delete) {
      let password = try PasswordPrompt.read()
      hash = try CommandFailure.failing { () throws(CryptoError) in try PasswordHash(of: password) }.text
    }
    guard let after = CredentialText.setting(user, to: hash, in: before?.bytes ?? []) else {
      throw CommandFailure(.failed, "\(quoted(path)) has no user \(quoted(arguments.operands[0]))")
    }
    try CommandFailure.failing { () throws(FileFailure) in
      try FileAccess.replace(path, after, mode: before?.mode ?? 0o600, owner: before?.owner)
    }
    return .good
  }

  /// The file behind a link: the link is to stay one.
  private static func resolved(_ path: String) -> String {
    guard let real = unsafe realpath(path, nil) else { return path }
    defer { unsafe free(real) }
    return unsafe String(cString: real)
  }

  /// The file as it is, with mode and owner, which are to stay; `nil` where there is none.
  private static func contents(
    _ path: String
  ) throws(CommandFailure) -> (bytes: [UInt8], mode: mode_t, owner: FileAccess.Owner)? {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw CommandFailure(.failed, FileFailure("read", path, code: errno).message)
    }
    let bytes = try CommandFailure.failing { () throws(FileFailure) in
      try FileAccess.read(path, limit: CredentialList.byteLimit)
    }
    return (bytes, status.st_mode & 0o777, FileAccess.Owner(user: status.st_uid, group: status.st_gid))
  }
}
