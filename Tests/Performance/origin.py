"""The server behind the proxies: nginx with a throw-away authority, one port for TLS 1.2 and one for TLS 1.3."""

import base64
import hashlib
import os
import subprocess

from system import find, free_ports

HOST = "pinned.test"
BULK_BYTES = 25_000_000

CONFIGURATION = """
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/nginx.log error;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  sendfile on;
  client_body_temp_path {folder}/temp-body;
  proxy_temp_path {folder}/temp-proxy;
  fastcgi_temp_path {folder}/temp-fastcgi;
  uwsgi_temp_path {folder}/temp-uwsgi;
  scgi_temp_path {folder}/temp-scgi;
  # Idle tunnels stay open until they are asked.
  keepalive_timeout 1h;
  client_header_timeout 1h;
  # Every handshake is a full one.
  ssl_session_cache off;
  ssl_session_tickets off;
  ssl_certificate {folder}/leaf.pem;
  ssl_certificate_key {folder}/leaf.key;
  {servers}
}}
"""

SERVER = """
  server {{
    listen 127.0.0.1:{port} ssl backlog=4096;
    ssl_protocols {version};
    location = / {{ return 200 "ok\\n"; }}
    location = /bulk {{ root {folder}/files; }}
  }}
"""


class Origin:
    """What contenders and clients have to know about the server."""

    def __init__(self, folder):
        self.folder = folder
        self.tls12, self.tls13 = free_ports(2)
        self.authority = os.path.join(folder, "ca.pem")
        self.pin = None

    def make(self, connections):
        """Writes certificates, files and the configuration. Raises when openssl fails."""
        self._certificates()
        files = os.path.join(self.folder, "files")
        os.makedirs(files)
        with open(os.path.join(files, "bulk"), "wb") as file:
            file.truncate(BULK_BYTES)
        servers = "".join(
            SERVER.format(port=port, version=version, folder=self.folder)
            for port, version in ((self.tls12, "TLSv1.2"), (self.tls13, "TLSv1.3")))
        with open(os.path.join(self.folder, "nginx.conf"), "w") as file:
            file.write(CONFIGURATION.format(
                workers=os.cpu_count() or 1, folder=self.folder, connections=connections, servers=servers))

    def start(self, processes):
        return processes.start(
            [find("nginx"), "-e", os.path.join(self.folder, "nginx.log"), "-p", self.folder,
             "-c", os.path.join(self.folder, "nginx.conf")],
            os.path.join(self.folder, "nginx.out"))

    def _certificates(self):
        with open(os.path.join(self.folder, "leaf.ext"), "w") as file:
            file.write(f"subjectAltName=DNS:{HOST},DNS:*.{HOST},IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n"
                       "keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self._openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30",
                      "-subj", "/CN=Throw-away authority")
        self._openssl("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", f"/CN={HOST}")
        self._openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                      "-days", "30", "-extfile", "leaf.ext", "-out", "leaf.pem")
        public = self._openssl("pkey", "-in", "leaf.key", "-pubout", "-outform", "DER")
        self.pin = "sha256/" + base64.b64encode(hashlib.sha256(public).digest()).decode()

    def _openssl(self, *arguments):
        result = subprocess.run([find("openssl"), *arguments], cwd=self.folder, capture_output=True)
        if result.returncode:
            raise RuntimeError(f"openssl {arguments[0]} failed: {result.stderr.decode(errors='replace').strip()}")
        return result.stdout
