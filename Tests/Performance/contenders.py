"""The proxies that are measured, each configured by its public documentation: loopback only, quiet, large limits."""

import datetime
import json
import os
import shutil
import subprocess

from origin import HOST
from system import find, free_ports


class Contender:
    """A proxy. `prepare` writes its files below `folder` and sets `command`."""

    name = ""
    does = "relays"
    #: Whether a tunnel is asked for by CONNECT. If not, `ports` has the port that leads to each of the origin's.
    connects = True

    def __init__(self, program, folder, origin, connections):
        self.program, self.origin, self.connections = program, origin, connections
        self.folder = os.path.join(folder, self.name)
        os.makedirs(self.folder)
        self.port, self.second = free_ports(2)
        self.ports = {}
        self.command = []

    def prepare(self):
        raise NotImplementedError

    def target(self):
        """The host of the CONNECT line: none of the peers has to resolve a name."""
        return "127.0.0.1"

    def version(self):
        return ""

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def first_line(self, *arguments):
        result = subprocess.run([self.program, *arguments], capture_output=True, text=True)
        return ((result.stdout + result.stderr).strip().splitlines() or [""])[0].strip()


class Pinfold(Contender):
    name = "pinfold"
    does = "verifies pins"

    def target(self):
        return HOST

    def prepare(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp = "%Y-%m-%dT%H:%M:%SZ"
        self.write("policy.json5", json.dumps({
            "version": 1,
            "issued_at": (now - datetime.timedelta(days=1)).strftime(stamp),
            "expires_at": (now + datetime.timedelta(days=30)).strftime(stamp),
            "ssl_pinning_config": {"hosts": self.rules()},
        }))
        public = self._pinfold("keygen", "-o", "key").strip().splitlines()[-1]
        self._pinfold("sign", "-k", "key", "policy.json5", "-o", "policy.signed.json")
        os.makedirs(self.path("state"))
        ports = [self.origin.tls12, self.origin.tls13]
        settings = {
            "listen": [f"127.0.0.1:{self.port}"],
            "admin": f"127.0.0.1:{self.second}",
            "state_dir": "state",
            "policy": {"bundles": ["policy.signed.json"], "trusted_keys": [public]},
            "tls": {"ca_file": self.origin.authority},
            "destinations": {"ports": ports, "resolve": {f"{HOST}:{port}": f"127.0.0.1:{port}" for port in ports}},
            "log": {"level": "warning"},
        }
        self.adjust(settings)
        self.write("pinfold.json5", json.dumps(settings, indent=2))
        self.command = [self.program, "run", "-c", self.path("pinfold.json5")]

    def rules(self):
        """The policy's rules by host."""
        return {HOST: {"pins": [self.origin.pin]}}

    def adjust(self, settings):
        """Changes the configuration before it is written."""

    def version(self):
        return self.first_line("version")

    def _pinfold(self, *arguments):
        result = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"pinfold {arguments[0]} failed: {result.stderr.strip()}")
        return result.stdout


class TrafficServer(Contender):
    name = "traffic_server"

    def prepare(self):
        for folder in ("etc", "var", "log", "cache"):
            os.makedirs(self.path(folder))
        places = {
            "prefix": self.folder, "exec_prefix": "/usr", "bindir": "/usr/bin", "sbindir": "/usr/sbin",
            "sysconfdir": self.path("etc"), "datadir": self.path("var"), "includedir": "/usr/include",
            "libdir": "/usr/lib", "libexecdir": self.path("var"), "localstatedir": self.path("var"),
            "runtimedir": self.path("var"), "logdir": self.path("log"), "mandir": "/usr/share/man",
            "infodir": "/usr/share/info", "cachedir": self.path("cache"),
        }
        self.write("runroot.yaml", "".join(f"{key}: {value}\n" for key, value in places.items()))
        self.write("etc/ip_allow.yaml", "ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n"
                   "    methods: ALL\n")
        for name in ("remap.config", "plugin.config", "storage.config"):
            self.write("etc/" + name, "")
        settings = [
            ("admin.user_id", "STRING", "#-1"),
            ("http.server_ports", "STRING", f"{self.port}:ip-in=127.0.0.1"),
            ("reverse_proxy.enabled", "INT", 0),
            ("url_remap.remap_required", "INT", 0),
            ("http.connect_ports", "STRING", f"{self.origin.tls12} {self.origin.tls13}"),
            ("http.cache.http", "INT", 0),
            ("log.logging_enabled", "INT", 0),
            ("diags.debug.enabled", "INT", 0),
            ("net.connections_throttle", "INT", 2 * self.connections),
            ("net.max_connections_in", "INT", self.connections),
            ("http.transaction_no_activity_timeout_in", "INT", 3600),
            ("http.transaction_no_activity_timeout_out", "INT", 3600),
        ]
        self.write("etc/records.config", "".join(
            f"CONFIG proxy.config.{name} {kind} {value}\n" for name, kind, value in settings))
        self.command = [self.program, f"--run-root={self.path('runroot.yaml')}"]

    def version(self):
        return self.first_line("-V")


class Tinyproxy(Contender):
    name = "tinyproxy"

    def prepare(self):
        self.write("tinyproxy.conf", f"Port {self.port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 3600\n"
                   f"MaxClients {self.connections}\nLogLevel Critical\nLogFile \"{self.path('log')}\"\n")
        self.command = [self.program, "-d", "-c", self.path("tinyproxy.conf")]

    def version(self):
        return self.first_line("-v")


class Squid(Contender):
    name = "squid"
    port_options = ""
    inspection = ""

    def prepare(self):
        self.write("hosts", f"127.0.0.1 {HOST}\n")
        self.write("squid.conf", f"""
http_port 127.0.0.1:{self.port}{self.port_options}
acl loopback src 127.0.0.0/8
http_access allow loopback
http_access deny all
pid_filename none
cache deny all
cache_mem 8 MB
access_log none
cache_log {self.path("cache.log")}
cache_store_log none
coredump_dir {self.folder}
pinger_enable off
hosts_file {self.path("hosts")}
dns_nameservers 127.0.0.1
visible_hostname squid.test
max_filedescriptors {2 * self.connections + 500}
read_timeout 1 hour
shutdown_lifetime 0 seconds
{self.inspection}""")
        if os.geteuid() == 0:
            # Started by root, Squid works as a user of its own.
            user = next((name for name in ("proxy", "squid", "nobody") if _exists(name)), "nobody")
            with open(self.path("squid.conf"), "a") as file:
                file.write(f"cache_effective_user {user}\n")
            for folder, _, files in os.walk(self.folder):
                for path in [folder, *(os.path.join(folder, name) for name in files)]:
                    shutil.chown(path, user)
        self.command = [self.program, "-N", "-f", self.path("squid.conf")]

    def version(self):
        return self.first_line("-v")


class SquidPeek(Squid):
    """Reads the handshake, the nearest to Pinfold's work: chains of TLS 1.2 are verified, of TLS 1.3 never seen."""

    name = "squid-peek"
    does = "verifies chains of TLS 1.2"

    def prepare(self):
        # Squid peeks only where it could also forge: nothing is decrypted here, so the certificate is never shown.
        store = self.path("forged")
        self.port_options = f" ssl-bump generate-host-certificates=on tls-cert={self.path('port.pem')}"
        self.inspection = f"""
sslcrtd_program {self.helper()} -s {store} -M 4MB
sslcrtd_children 1 startup=1 idle=1
tls_outgoing_options cafile={self.origin.authority}
acl hello at_step SslBump1
acl flight at_step SslBump2
ssl_bump peek hello
ssl_bump peek flight
ssl_bump splice all
"""
        with open(self.path("port.pem"), "w") as file:
            for name in ("leaf.pem", "leaf.key"):
                with open(os.path.join(self.origin.folder, name)) as part:
                    file.write(part.read())
        made = subprocess.run([self.helper(), "-c", "-s", store, "-M", "4MB"], capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(f"Squid's certificate helper failed: {made.stderr.strip()}")
        super().prepare()

    def available(self):
        return self.helper() is not None

    @staticmethod
    def helper():
        """Part of Squid's builds with OpenSSL alone."""
        folders = ("/usr/lib/squid", "/usr/lib64/squid", "/usr/libexec/squid", "/usr/local/libexec/squid")
        return next((path for path in (f"{each}/security_file_certgen" for each in folders) if os.path.exists(path)),
                    None)


class Haproxy(Contender):
    """A relay without CONNECT or any look at the bytes: what the plain work costs."""

    name = "haproxy"
    does = "relays, no CONNECT"
    connects = False

    def prepare(self):
        self.ports = {self.origin.tls12: self.port, self.origin.tls13: self.second}
        sections = "".join(
            f"listen to{origin}\n  bind 127.0.0.1:{own} backlog 4096\n  server origin 127.0.0.1:{origin}\n"
            for origin, own in self.ports.items())
        self.write("haproxy.cfg", f"global\n  maxconn {self.connections}\n  maxpipes 200\ndefaults\n  mode tcp\n"
                   f"  option splice-auto\n  maxconn {self.connections}\n  timeout connect 5s\n  timeout client 1h\n"
                   f"  timeout server 1h\n{sections}")
        self.command = [self.program, "-db", "-f", self.path("haproxy.cfg")]

    def version(self):
        return self.first_line("-v")


def _exists(user):
    with open("/etc/passwd") as file:
        return any(line.startswith(user + ":") for line in file)


PEERS = [(TrafficServer, "traffic_server"), (Tinyproxy, "tinyproxy"), (SquidPeek, "squid"), (Squid, "squid"),
         (Haproxy, "haproxy")]


def all_of(pinfold, folder, origin, connections):
    """Pinfold and the peers that are installed, prepared; and the names of those that are missing."""
    found, missing = [Pinfold(pinfold, folder, origin, connections)], []
    for kind, program in PEERS:
        path = find(program)
        contender = kind(path, folder, origin, connections) if path else None
        if contender is None or not getattr(contender, "available", lambda: True)():
            missing.append(kind.name)
        else:
            found.append(contender)
    for contender in found:
        contender.prepare()
    return found, missing
