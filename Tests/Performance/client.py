"""Tunnels through a contender: as an app would open them, with chain and host name verified and no resumption."""

import concurrent.futures
import os
import socket
import ssl
import subprocess

from origin import BULK_BYTES, HOST
from system import find

AT_A_TIME = 16
SECONDS = 20
REQUEST = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: %s\r\n\r\n"


class TunnelFailed(Exception):
    """A tunnel did not do what it should; the text says how."""


class Client:
    def __init__(self, origin, processes):
        self.origin, self.processes = origin, processes
        self.contexts = {}
        for port, version in ((origin.tls12, ssl.TLSVersion.TLSv1_2), (origin.tls13, ssl.TLSVersion.TLSv1_3)):
            context = ssl.create_default_context(cafile=origin.authority)
            context.minimum_version = context.maximum_version = version
            self.contexts[port] = context

    def open(self, contender, port):
        """A tunnel with a completed handshake. Raises TunnelFailed."""
        place = contender.port if contender.connects else contender.ports[port]
        plain = None
        try:
            plain = socket.create_connection(("127.0.0.1", place), SECONDS)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if contender.connects:
                target = f"{contender.target()}:{port}"
                plain.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
                head = b""
                # A server never speaks first in TLS, so nothing behind the head can be taken by mistake.
                while b"\r\n\r\n" not in head:
                    part = plain.recv(4096)
                    if not part or len(head) > 16384:
                        raise TunnelFailed(f"no complete reply to CONNECT: {head[:80]!r}")
                    head += part
                if head.split(b" ", 2)[1:2] != [b"200"]:
                    raise TunnelFailed(f"CONNECT was answered {head.splitlines()[0].decode(errors='replace')}")
            return self.contexts[port].wrap_socket(plain, server_hostname=HOST)
        except (OSError, ValueError) as error:
            if plain:
                plain.close()
            raise TunnelFailed(f"{type(error).__name__}: {error}") from error
        except TunnelFailed:
            plain.close()
            raise

    @staticmethod
    def ask(tunnel, last):
        """One small request; `last` has the server end the connection after it."""
        try:
            tunnel.sendall((REQUEST % ("close" if last else "keep-alive")).encode())
            answer = b""
            while last or not answer.endswith(b"ok\n"):
                part = tunnel.recv(4096)
                if not part:
                    break
                answer += part
        except (OSError, ValueError) as error:
            raise TunnelFailed(f"{type(error).__name__}: {error}") from error
        if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(b"ok\n"):
            raise TunnelFailed(f"the answer was {answer[:80]!r}")

    def once(self, contender, port):
        with self.open(contender, port) as tunnel:
            self.ask(tunnel, last=True)

    def tunnels(self, contender, port, count):
        """Opens, asks and closes `count` tunnels; the texts of what failed."""
        return [error for _, error in _each(lambda _: self.once(contender, port), range(count)) if error]

    def hold(self, contender, port, count):
        """Opens `count` tunnels and keeps them: the tunnels, and the texts of what failed."""
        results = _each(lambda _: self.open(contender, port), range(count))
        return [tunnel for tunnel, _ in results if tunnel], [error for _, error in results if error]

    def answers(self, tunnels):
        """Has every held tunnel answer once; the texts of what failed."""
        return [error for _, error in _each(lambda tunnel: self.ask(tunnel, last=False), tunnels) if error]

    def bulk(self, contender, port, copies, streams):
        """Downloads the large file `copies` times over each of `streams` tunnels: bytes, and what failed."""
        # Neither a .curlrc nor variables: a developer's own settings must not lead around the contender.
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        command = [find("curl"), "-q", "--silent", "--show-error", "--fail", "--http1.1", "--cacert",
                   self.origin.authority, "--output", "/dev/null",
                   "--write-out", "%{num_connects} %{size_download}\n"]
        if contender.connects:
            command += ["--proxy", f"http://127.0.0.1:{contender.port}", "--noproxy", "",
                        "--connect-to", f"{HOST}:{port}:{contender.target()}:{port}"]
        else:
            command += ["--connect-to", f"{HOST}:{port}:127.0.0.1:{contender.ports[port]}"]
        command.append(f"https://{HOST}:{port}/bulk?[1-{copies}]")
        log = os.path.join(self.origin.folder, "curl.out")
        running = [self.processes.start(command, log, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
                   for _ in range(streams)]
        total, errors = 0, []
        for process in running:
            output, complaint = process.communicate()
            self.processes.end(process)
            rows = [line.split() for line in output.decode().splitlines()]
            total += sum(int(row[1]) for row in rows)
            connections = sum(int(row[0]) for row in rows)
            if process.returncode or [int(row[1]) for row in rows] != [BULK_BYTES] * copies:
                errors.append(f"curl ended with {process.returncode}: {complaint.decode(errors='replace').strip()}")
            elif connections != 1:
                errors.append(f"curl needed {connections} tunnels for what belongs into one")
        return total, errors


def _each(work, items):
    """Does `work` for each item, AT_A_TIME at a time: pairs of result and failure's text, in order."""
    def attempt(item):
        try:
            return work(item), None
        except TunnelFailed as error:
            return None, str(error)

    pool = concurrent.futures.ThreadPoolExecutor(AT_A_TIME)
    try:
        return list(pool.map(attempt, items))
    finally:
        # After an interruption what is queued must not run on.
        pool.shutdown(wait=True, cancel_futures=True)
