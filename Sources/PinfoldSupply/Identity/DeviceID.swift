package import PinfoldConfig
import PinfoldCrypto

/// What tells this device from others, for rollouts by `device_id`, and where it is known from.
///
/// In this order: `instance.id` of the configuration; the id of the container, if this is one; the machine's id
/// (machine-id(5)). A container's image often brings a machine id along, the same for every container made of it, so a
/// container's own id comes first, unless the machine's file was mounted into it on purpose. A container's id ends with
/// the container: where it should not, set `instance.id`. Without any of them the device is not known. Host names are not
/// asked: too many machines are called `localhost`.
package struct DeviceID: Equatable, Sendable {
  /// Where an id is known from. The raw value is the word of `check`.
  package enum Source: String, CaseIterable, Sendable {
    case configuration = "instance.id"
    case machine = "/etc/machine-id"
    case container = "the container's id"
  }

  /// The id, never written to a log.
  package let text: String
  package let source: Source

  /// An id that is known from somewhere.
  package init(_ text: String, from source: Source) {
    self.text = text
    self.source = source
  }

  /// Finds the id of this device; `nil` when it is not known. Reads files of the system.
  package init?(_ configuration: Configuration) {
    if let own = configuration.instance.id {
      self.init(own, from: .configuration)
    } else {
      self.init(
        machineID: Self.read("/etc/machine-id"), mounts: Self.read("/proc/self/mountinfo"),
        groups: Self.read("/proc/self/cgroup"))
    }
  }

  /// The same of what the three files hold: machine-id(5), proc_pid_mountinfo(5), cgroups(7).
  init?(machineID: String, mounts: String, groups: String) {
    let mounts = mounts.split(separator: "\n").map { $0.split(separator: " ") }.filter { $0.count > 4 }
    let container = Self.container(mounts) ?? Self.container(groups: groups)
    let machine = Self.machine(machineID)
    if let container, machine == nil || !mounts.contains(where: { $0[4] == "/etc/machine-id" }) {
      self.init(container, from: .container)
    } else if let machine {
      self.init(machine, from: .machine)
    } else {
      return nil
    }
  }

  private static func machine(_ text: String) -> String? {
    let id = text.prefix { $0 != "\n" }
    let isID = id.utf8.count == 32 && id.utf8.allSatisfy(isHexDigit) && id.utf8.contains { $0 != 0x30 }
    return isID ? String(id) : nil
  }

  /// Container runtimes mount these files from a directory that is called after the container (or, in Kubernetes, after
  /// the pod's sandbox): the fourth field is the path inside the file system, the fifth where it is mounted.
  private static func container(_ mounts: [[Substring]]) -> String? {
    for file in ["/etc/hostname", "/etc/resolv.conf"] {
      for mount in mounts where mount[4] == file {
        if let id = mount[3].split(separator: "/").first(where: isContainerID) { return String(id) }
      }
    }
    return nil
  }

  /// With cgroups of version 1, or without a namespace of their own: `…/docker/<id>`, `…/cri-containerd-<id>.scope`.
  private static func container(groups: String) -> String? {
    for line in groups.split(separator: "\n") {
      let words = line.utf8.split { !isHexDigit($0) }
      if let id = words.map({ Substring($0) }).first(where: isContainerID) { return String(id) }
    }
    return nil
  }

  private static func isContainerID(_ text: Substring) -> Bool {
    text.utf8.count == 64 && text.utf8.allSatisfy(isHexDigit)
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x66)
  }

  /// Bytes of one of the files: thousands of mounts.
  private static let limit = 4 << 20

  private static func read(_ path: String) -> String {
    (try? PrivateFile.read(path, limit: limit)).map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
  }
}
