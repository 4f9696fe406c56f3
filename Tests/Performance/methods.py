#!/usr/bin/env python3
"""Measures Pinfold's ways of knowing a server's key beside each other, in one run on loopback. See README.md."""

import argparse
import multiprocessing
import os
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from contenders import Pinfold  # noqa: E402
from origin import HOST, Origin  # noqa: E402
from report import digits, table  # noqa: E402
from system import Processes, find, process_cpu_seconds  # noqa: E402

SECONDS = 20
START_SECONDS = 30
WARM_UP = 100
#: Tunnels of each client that are measured together, without a pause between them: it would have each find cold caches.
GROUP = 20
#: What the proxy still does for tunnels that their client has closed is done after this.
SETTLE_SECONDS = 0.03
#: Names below HOST: where each tunnel is to be one of a host's own.
NAMES = 4000


class Method(Pinfold):
    """Pinfold with one way of knowing the key. Every tunnel is a full handshake."""

    version13 = True
    keyed = False
    #: Whether each tunnel goes to a host that no tunnel went to before.
    fresh_hosts = False

    def __init__(self, program, folder, origin, connections):
        super().__init__(program, folder, origin, connections)
        self.used = 0

    def rules(self):
        return {HOST: {"pins": [self.origin.pin]}, f"*.{HOST}": {"pins": [self.origin.pin]}}

    def adjust(self, settings):
        settings["workers"] = 1
        if not self.fresh_hosts:
            return
        port = self.origin_port()
        settings["destinations"]["resolve"] = {
            f"{name}:{port}": f"127.0.0.1:{port}" for name in [HOST] + [f"h{n}.{HOST}" for n in range(NAMES)]}

    def origin_port(self):
        return self.origin.tls13 if self.version13 else self.origin.tls12

    def next_host(self):
        if not self.fresh_hosts:
            return HOST
        self.used += 1
        return f"h{self.used % NAMES}.{HOST}"

    def log_file(self):
        return self.path("keys") if self.keyed else None


class Unverified13(Method):
    name = "unverified"
    does = "TLS 1.3, `unpinned: \"tunnel\"`"

    def rules(self):
        return {"elsewhere.test": {"pins": [self.origin.pin]}}

    def adjust(self, settings):
        super().adjust(settings)
        settings["policy"]["unpinned"] = "tunnel"
        settings["destinations"]["allow"] = ["127.0.0.0/8"]


class KeyLog(Method):
    name = "key_log"
    does = "TLS 1.3, judged by the app's key log"
    keyed = True

    def rules(self):
        return {HOST: {"pins": [self.origin.pin], "tls13": "key_log"}}

    def adjust(self, settings):
        super().adjust(settings)
        settings["tls"]["key_log"] = "keys"


class Twin(Method):
    name = "twin"
    does = "TLS 1.3, probed by a twin of the app's hello"
    fresh_hosts = True


class OpenSSLProbe(Method):
    """OpenSSL's own hello is what a verdict for several tunnels is made by; here each tunnel needs a new one."""

    name = "openssl"
    does = "TLS 1.3, probed by OpenSSL's own hello"
    fresh_hosts = True

    def adjust(self, settings):
        super().adjust(settings)
        settings["tls"]["probe_reuse_seconds"] = 1


class Unverified12(Unverified13):
    name = "unverified12"
    does = "TLS 1.2, `unpinned: \"tunnel\"`"
    version13 = False


class InBand(Method):
    name = "in_band"
    does = "TLS 1.2, in band"
    version13 = False


class InBandBefore(InBand):
    name = "in_band_before"
    does = "TLS 1.2, in band, by the binary of --before"


class Client:
    """One tunnel after another."""

    def __init__(self, method):
        self.method = method
        self.context = ssl.create_default_context(cafile=method.origin.authority)
        version = ssl.TLSVersion.TLSv1_3 if method.version13 else ssl.TLSVersion.TLSv1_2
        self.context.minimum_version = self.context.maximum_version = version

    def start_logging(self):
        """Once the pipe is there."""
        if self.method.log_file():
            self.context.keylog_filename = self.method.log_file()

    def tunnel(self):
        """Milliseconds from the CONNECT to the end of the handshake."""
        host = self.method.next_host()
        target = f"{host}:{self.method.origin_port()}"
        with socket.create_connection(("127.0.0.1", self.method.port), SECONDS) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            start = time.perf_counter()
            plain.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head:
                part = plain.recv(4096)
                if not part:
                    raise OSError(f"no reply to CONNECT: {head!r}")
                head += part
            if b" 200" not in head.split(b"\r\n")[0]:
                raise OSError(f"CONNECT was answered {head!r}")
            with self.context.wrap_socket(plain, server_hostname=host) as secure:
                took = time.perf_counter() - start
                secure.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                answer = b""
                while part := secure.recv(4096):
                    answer += part
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise OSError(f"the answer was {answer[:60]!r}")
        return 1000 * took


class Clients:
    """Processes with a client each, which open tunnels at the same time."""

    def __init__(self, method, count):
        self.ends = []
        for number in range(count):
            ours, theirs = multiprocessing.Pipe()
            multiprocessing.Process(
                target=self.work, args=(method, number * NAMES // count, ours, theirs), daemon=True).start()
            # Only the client holds it now: what it no longer answers is at its end.
            theirs.close()
            self.ends.append(ours)

    @staticmethod
    def work(method, first_name, ours, theirs):
        # Copied by the fork: with it nobody would see that the driver is gone.
        ours.close()
        method.used = first_name
        client = Client(method)
        client.start_logging()
        try:
            while True:
                count = theirs.recv()
                theirs.send([client.tunnel() for _ in range(count)])
        except EOFError:
            pass
        except (OSError, ValueError) as error:
            theirs.send(error)

    def tunnels(self, count):
        """Opens so many with each client; the milliseconds that each took."""
        for end in self.ends:
            end.send(count)
        took = []
        for end in self.ends:
            answer = end.recv()
            if isinstance(answer, Exception):
                raise answer
            took += answer
        return took


class Runner:
    """A method's running proxy with its clients."""

    def __init__(self, method, processes, at_once):
        self.method, self.client, self.at_once = method, Client(method), at_once
        self.clients = None
        self.cpu, self.latency = [], []
        self.process = processes.start(method.command, method.path("output"), cwd=method.folder)

    def wait(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.method.port), 1):
                    pass
                self.client.start_logging()
                self.client.tunnel()
                return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    with open(self.method.path("output"), errors="replace") as log:
                        raise RuntimeError(f"{self.method.name}: {error}; it wrote: {log.read()[-500:]}") from error
                time.sleep(0.1)

    def warm(self):
        self.clients = Clients(self.method, self.at_once)
        self.clients.tunnels(-(-WARM_UP // self.at_once))

    def batch(self, count):
        """Measures small groups: what the machine does beside is in a few of them, and not in the median."""
        for first in range(0, count, GROUP):
            tunnels = min(GROUP, count - first)
            before = process_cpu_seconds(self.process.pid)
            self.latency += self.clients.tunnels(tunnels)
            time.sleep(SETTLE_SECONDS)
            self.cpu.append(1e6 * (process_cpu_seconds(self.process.pid) - before) / (tunnels * self.at_once))


def verification():
    """µs of CPU in which OpenSSL verifies a P-256 signature over and over: how fast the machine is just now."""
    speed = subprocess.run(
        ["openssl", "speed", "-mr", "-seconds", "1", "ecdsap256"], capture_output=True, text=True, check=True)
    # Its last field counts the verifications of a second.
    return 1e6 / float(speed.stdout.strip().rsplit(":", 1)[1])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="rounds over all methods (15)")
    parser.add_argument("--tunnels", type=int, default=100, help="tunnels per method, client and round (100)")
    parser.add_argument("--at-once", type=int, default=1, help="clients that open tunnels at the same time (1)")
    parser.add_argument("--pinfold", default=".build/release/pinfold", help="the binary (.build/release/pinfold)")
    parser.add_argument("--before", help="an older binary, for TLS 1.2 in band beside this one")
    options = parser.parse_args()
    if min(options.rounds, options.tunnels, options.at_once) < 1:
        parser.error("--rounds, --tunnels and --at-once are 1 at least")
    for name in ("nginx", "openssl"):
        if not find(name):
            sys.exit(f"methods.py: {name} is missing; please install it")
    for name in filter(None, (options.pinfold, options.before)):
        if not os.access(name, os.X_OK):
            sys.exit(f"methods.py: there is no {name}; `make build` makes it")
    return options


def measure(options, folder, processes):
    origin = Origin(os.path.join(folder, "origin"))
    os.makedirs(origin.folder)
    origin.make(1000)
    origin.start(processes)
    kinds = [(kind, options.pinfold) for kind in (Unverified13, KeyLog, Twin, OpenSSLProbe, Unverified12, InBand)]
    if options.before:
        kinds.append((InBandBefore, options.before))
    runners = []
    for kind, binary in kinds:
        method = kind(os.path.abspath(binary), folder, origin, 1000)
        method.prepare()
        runners.append(Runner(method, processes, options.at_once))
    for runner in runners:
        runner.wait()
        runner.warm()
    verifications = []
    for number in range(options.rounds):
        verifications.append(verification())
        # Another order each time: what the machine does beside this is to meet all of them.
        order = runners[number % len(runners):] + runners[:number % len(runners)]
        for runner in order:
            runner.batch(options.tunnels)
        groups = -(-options.tunnels // GROUP)
        latest = (f"{each.method.name} {statistics.median(each.cpu[-groups:]):.0f}" for each in runners)
        print(f"round {number + 1}", *latest, f"verification {verifications[-1]:.0f}", file=sys.stderr)
    print(report(runners, statistics.median(verifications), options))


def quartiles(values):
    if len(values) < 2:
        return "–"
    first, _, third = statistics.quantiles(values, n=4)
    return f"{digits(first)}–{digits(third)}"


def report(runners, unit, options):
    with open("/proc/loadavg") as file:
        load = file.read().split()[0]
    by_name = {each.method.name: each for each in runners}
    cpu = {name: statistics.median(each.cpu) for name, each in by_name.items()}
    latency = {name: statistics.median(each.latency) for name, each in by_name.items()}
    base = {name: "unverified" if each.method.version13 else "unverified12" for name, each in by_name.items()}
    rows = [
        [name, each.method.does, digits(cpu[name]), quartiles(each.cpu),
         digits(cpu[name] - cpu[base[name]]), digits(latency[name]), digits(latency[name] - latency[base[name]])]
        for name, each in by_name.items()]
    added = cpu["key_log"] - cpu["unverified"]
    probes = (cpu["twin"] - cpu["unverified"]) / (cpu["openssl"] - cpu["unverified"])
    order = "one after another" if options.at_once == 1 else f"by each of {options.at_once} clients at the same time"
    lines = [
        f"{options.rounds} rounds of {options.tunnels} tunnels, {order}, on {os.cpu_count()} cores, load "
        f"{load} at the end. Medians; µs of Pinfold's CPU, ms from the CONNECT to the end of the handshake.",
        table(["method", "what", "CPU µs per tunnel", "middle half", "over unverified", "ms", "over unverified"], rows),
        f"- key log over unverified: {digits(added)} µs (at most 300), "
        f"{digits(latency['key_log'] - latency['unverified'])} ms (at most 3)",
        f"- the machine: OpenSSL verified a P-256 signature in {digits(unit)} µs of CPU, median of all rounds; "
        f"key log over unverified is {digits(added / unit)} of these",
        f"- twin ÷ OpenSSL's hello: {digits(cpu['twin'] / cpu['openssl'])} of whole tunnels, {digits(probes)} of what is "
        "over unverified (at most 1.3)",
    ]
    if "in_band_before" in cpu:
        lines.append(f"- in band ÷ before: {digits(cpu['in_band'] / cpu['in_band_before'])} (at most 1.05)")
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:])


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    folder = tempfile.mkdtemp(prefix="pinfold-methods-")
    try:
        with Processes() as processes:
            measure(options, folder, processes)
    except KeyboardInterrupt:
        sys.exit(130)
    except (RuntimeError, OSError) as error:
        sys.exit(f"methods.py: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
