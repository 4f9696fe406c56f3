#!/usr/bin/env python3
"""Measures Pinfold beside other proxies in one run, on loopback. See README.md in this folder."""

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from client import Client, TunnelFailed  # noqa: E402
from contenders import all_of  # noqa: E402
from origin import BULK_BYTES, Origin  # noqa: E402
from report import render  # noqa: E402
from system import Processes, cpu_seconds, find, resident_kib  # noqa: E402

STREAMS = 4
WARM_UP = 64
START_SECONDS = 20
MEASURES = [
    ("tunnels", "CPU ms per TLS 1.2 tunnel"),
    ("tls13", "CPU ms per TLS 1.3 tunnel"),
    ("bulk", "CPU s per GB"),
    ("idle", "KiB per idle tunnel"),
]


class Run:
    """One measurement of one contender, started afresh for it."""

    def __init__(self, contender, client, processes, options):
        self.contender, self.client, self.processes, self.options = contender, client, processes, options
        self.origin = client.origin
        self.errors = []

    def measure(self, key):
        """The figure, or None when it cannot be trusted because a tunnel failed."""
        log = self.contender.path("output")
        process = self.processes.start(self.contender.command, log, cwd=self.contender.folder)
        try:
            self._wait(process, log)
            return getattr(self, key)(process.pid)
        finally:
            self.processes.end(process)

    def tunnels(self, session):
        return self._handshakes(session, self.origin.tls12)

    def tls13(self, session):
        return self._handshakes(session, self.origin.tls13)

    def _handshakes(self, session, port):
        self._warm(port)
        before = self._cpu(session)
        self.errors += self.client.tunnels(self.contender, port, self.options.tunnels)
        spent = self._cpu(session) - before
        return None if self.errors else 1000 * spent / self.options.tunnels

    def bulk(self, session):
        port = self.origin.tls12
        self._warm(port)
        copies = max(1, round(self.options.gigabytes * 1e9 / STREAMS / BULK_BYTES))
        before = self._cpu(session)
        received, errors = self.client.bulk(self.contender, port, copies, STREAMS)
        self.errors += errors
        spent = self._cpu(session) - before
        return None if self.errors else spent / (received / 1e9)

    def idle(self, session):
        port = self.origin.tls12
        self._warm(port)
        time.sleep(1)
        before = resident_kib(session)
        tunnels, errors = self.client.hold(self.contender, port, self.options.idle)
        try:
            self.errors += errors
            # What only the handshakes needed may be given back first.
            time.sleep(2)
            grown = resident_kib(session) - before
            self.errors += self.client.answers(tunnels)
        finally:
            for tunnel in tunnels:
                tunnel.close()
        return None if self.errors else grown / self.options.idle

    def _warm(self, port):
        self.errors += self.client.tunnels(self.contender, port, WARM_UP)

    @staticmethod
    def _cpu(session):
        # The last tunnels' ends are still being handled when the client has closed them.
        time.sleep(0.3)
        return cpu_seconds(session)

    def _wait(self, process, log):
        """Returns when tunnels of both kinds pass. Raises TunnelFailed with what the contender wrote last."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                for port in (self.origin.tls12, self.origin.tls13):
                    self.client.once(self.contender, port)
                return
            except TunnelFailed as error:
                ended = process.poll() is not None
                if not ended and time.monotonic() < deadline:
                    time.sleep(0.1)
                    continue
                with open(log, errors="replace") as file:
                    said = " / ".join(file.read().strip().splitlines()[-3:])
                reason = f"ended with {process.returncode}" if ended else f"opens no tunnel: {error}"
                raise TunnelFailed(f"{reason}; it wrote: {said or 'nothing'}") from error


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    positive = _number(int)
    parser.add_argument("--rounds", type=positive, default=3, help="rounds over all proxies (3)")
    parser.add_argument("--tunnels", type=positive, default=2000, help="tunnels per TLS version and round (2000)")
    parser.add_argument("--gigabytes", type=_number(float), default=2.0, help="downloaded per proxy and round (2)")
    parser.add_argument("--idle", type=positive, default=2000, help="idle tunnels (2000)")
    parser.add_argument("--only", metavar="MEASURE", action="append", choices=[key for key, _ in MEASURES],
                        help="measure this alone: tunnels, tls13, bulk or idle; may be repeated")
    parser.add_argument("--pinfold", default=".build/release/pinfold", help="the binary (.build/release/pinfold)")
    return parser.parse_args()


def _number(kind):
    def number(text):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    return number


def require(options):
    """Ends with a sentence when something is missing that nothing can be measured without."""
    for name in ("nginx", "openssl", "curl"):
        if not find(name):
            sys.exit(f"peers.py: {name} is missing; please install it")
    options.pinfold = os.path.abspath(options.pinfold)
    if not os.access(options.pinfold, os.X_OK):
        sys.exit(f"peers.py: there is no {options.pinfold}; `make build` makes it")
    # A proxy has two sockets per tunnel, and some of its own.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = (hard - 1500) // 2 if hard != resource.RLIM_INFINITY else options.idle
    if most < 1:
        sys.exit(f"peers.py: {hard} open files are too few; raise the hard limit (ulimit -Hn)")
    if options.idle > most:
        print(f"peers.py: {most} idle tunnels instead of {options.idle}: the hard limit of open files is {hard}",
              file=sys.stderr)
        options.idle = most


def measure(options, folder, processes):
    """Runs everything and prints the tables. Whether no tunnel failed."""
    connections = options.idle + 500
    server = os.path.join(folder, "origin")
    os.makedirs(server)
    origin = Origin(server)
    origin.make(2 * connections)
    contenders, missing = all_of(options.pinfold, folder, origin, connections)
    for name in missing:
        print(f"peers.py: {name} is not installed and left out", file=sys.stderr)
    origin.start(processes)
    client = Client(origin, processes)
    measures = [each for each in MEASURES if not options.only or each[0] in options.only]
    figures = {key: {each.name: [] for each in contenders} for key, _ in measures}
    errors = {each.name: 0 for each in contenders}
    for number in range(options.rounds):
        for key, _ in measures:
            for contender in contenders:
                run = Run(contender, client, processes, options)
                try:
                    figure = run.measure(key)
                except TunnelFailed as error:
                    figure, run.errors = None, run.errors + [str(error)]
                errors[contender.name] += len(run.errors)
                if figure is not None:
                    figures[key][contender.name].append(figure)
                said = f"{figure:.4f}" if figure is not None else f"failed {len(run.errors)} times: {run.errors[0]}"
                print(f"round {number + 1} {key} {contender.name}: {said}", file=sys.stderr, flush=True)
    print(render(contenders, measures, figures, errors, options, missing))
    return not any(errors.values())


def main():
    options = arguments()
    require(options)
    # Ended by a signal, the `with` blocks below still clean up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    folder = tempfile.mkdtemp(prefix="pinfold-peers-")
    try:
        # Proxies started by root work as other users, who must get to their folders.
        os.chmod(folder, 0o755)
        with Processes() as processes:
            passed = measure(options, folder, processes)
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as error:
        sys.exit(f"peers.py: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
