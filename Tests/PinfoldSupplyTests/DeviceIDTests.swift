import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

@Suite struct DeviceIDTests {
  private static let container = String(repeating: "0123456789abcdef", count: 4)
  private static let machine = "3d1219c7c4c5404aaa1f6d2a48adfda4"

  struct Row: CustomTestStringConvertible {
    var testDescription: String
    var machineID = "\(machine)\n"
    var mounts = ""
    var groups = ""
    var id: String?
    var source: DeviceID.Source?
  }

  private static func mount(_ root: String, on place: String) -> String {
    "648 640 254:1 \(root) \(place) rw,relatime - ext4 /dev/vda1 rw\n"
  }

  private static let docker = mount("/var/lib/docker/containers/\(container)/hostname", on: "/etc/hostname")

  static let rows = [
    Row(testDescription: "a machine", mounts: mount("/", on: "/"), id: machine, source: .machine),
    Row(testDescription: "a container of Docker", machineID: "", mounts: docker, id: container, source: .container),
    Row(
      testDescription: "a container whose image brings a machine id along", mounts: docker, id: container,
      source: .container),
    Row(
      testDescription: "a container with the machine's id mounted into it",
      mounts: docker + mount("/etc/machine-id", on: "/etc/machine-id"), id: machine, source: .machine),
    Row(
      testDescription: "a pod's sandbox under containerd", machineID: "",
      mounts: mount(
        "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/\(container)/hostname", on: "/etc/hostname"),
      id: container, source: .container),
    Row(
      testDescription: "Podman, by resolv.conf", machineID: "",
      mounts: mount("/containers/overlay-containers/\(container)/userdata/resolv.conf", on: "/etc/resolv.conf"),
      id: container, source: .container),
    Row(
      testDescription: "cgroups of version 1", machineID: "", groups: "12:pids:/docker/\(container)\n0::/\n",
      id: container, source: .container),
    Row(
      testDescription: "a scope of systemd", machineID: "",
      groups: "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-\(container).scope\n", id: container,
      source: .container),
    Row(
      testDescription: "a long hash elsewhere is no container",
      mounts: mount("/var/lib/docker/containers/\(container)/data", on: "/data"), id: machine, source: .machine),
    Row(
      testDescription: "63 digits are no container", groups: "0::/docker/\(container.dropLast())\n", id: machine,
      source: .machine),
    Row(testDescription: "65 digits neither", groups: "0::/docker/\(container)0\n", id: machine, source: .machine),
    Row(testDescription: "nothing at all", machineID: ""),
    Row(testDescription: "a machine id that was never set", machineID: "uninitialized\n"),
    Row(testDescription: "a machine id of zeros", machineID: String(repeating: "0", count: 32) + "\n"),
    Row(testDescription: "a machine id in capitals", machineID: machine.uppercased() + "\n"),
    Row(testDescription: "short lines and junk", machineID: "\u{0}", mounts: "a b\n\n c", groups: "::::\n\u{1}"),
  ]

  @Test("A device is known by what is its own", arguments: rows) func found(_ row: Row) {
    let device = DeviceID(machineID: row.machineID, mounts: row.mounts, groups: row.groups)
    #expect(device?.text == row.id)
    #expect(device?.source == row.source)
  }

  @Test func `what the configuration says comes first`() {
    var configuration = Configuration()
    configuration.instance.id = "canary-1"
    #expect(DeviceID(configuration) == DeviceID("canary-1", from: .configuration))
    #expect(configuration.localPolicy(deviceID: DeviceID(configuration)?.text).identity.deviceID == "canary-1")
  }

  @Test func `the files of this machine can be read`() {
    // What they say is this machine's business; twice the same is ours.
    #expect(DeviceID(Configuration()) == DeviceID(Configuration()))
  }
}

@Suite struct InstallIDTests {
  let place: SupplyFixture

  init() throws { place = try SupplyFixture() }

  @Test func `it is made once, for its owner alone, and stays`() throws {
    #expect(try InstallID(stateDirectory: place.path) == nil)
    let made = try InstallID.loadOrCreate(stateDirectory: place.path)
    #expect(Hex.decode(made.text)?.count == 16)
    #expect(try place.mode("install.id") == 0o600)
    #expect(try InstallID(stateDirectory: place.path)?.text == made.text)
    #expect(try InstallID.loadOrCreate(stateDirectory: place.path).text == made.text)
    let other = try SupplyFixture()
    #expect(try InstallID.loadOrCreate(stateDirectory: other.path).text != made.text)
  }

  @Test func `the state directory is made where there is none`() throws {
    _ = try InstallID.loadOrCreate(stateDirectory: "\(place.path)/state")
    #expect(try place.mode("state") == 0o700)
  }

  @Test(
    "A damaged file is said to be so and left alone",
    arguments: [
      "", "\n", "0123", "zz0123456789abcdef0123456789abcd\n", "0123456789ABCDEF0123456789abcdef\n",
      "0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef\n\n",
    ])
  func damaged(text: String) throws {
    try place.put("install.id", Array(text.utf8))
    #expect(throws: InstallIDError.damaged(path: "\(place.path)/install.id")) {
      try InstallID.loadOrCreate(stateDirectory: place.path)
    }
    #expect(try place.get("install.id") == Array(text.utf8))
  }

  @Test func `a directory that is none is an error, and nothing else`() throws {
    try place.put("file", [])
    do throws(InstallIDError) {
      _ = try InstallID.loadOrCreate(stateDirectory: "\(place.path)/file")
      Issue.record("a file is no directory")
    } catch {
      #expect(error.description.contains("install_id is not known"))
    }
  }
}
