"""Serves signed policies over HTTPS on 127.0.0.1, well or badly.

bundles.py CHAIN KEY FOLDER PORT: GET /NAME answers with the file of that name in FOLDER, its ETag, or 304. The file "mode"
in FOLDER says what goes wrong: cut, large, endless, garbage, foreign, redirect,
weak. Each request adds a line to the file
"requests": its status, and the If-None-Match it came with.
"""
import hashlib
import http.server
import os
import ssl
import sys

chain, key, folder, port = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


def read(name):
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except OSError:
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def note(self, status):
        with open(os.path.join(folder, "requests"), "a") as file:
            file.write("%d %s\n" % (status, self.headers.get("If-None-Match", "-")))

    def head(self, status, *fields):
        self.note(status)
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self):
        mode = (read("mode") or b"").decode().strip()
        body = read(self.path.strip("/"))
        self.close_connection = True
        if body is None:
            return self.head(404, ("Content-Length", "0"))
        tag = '"%s"' % hashlib.sha256(body).hexdigest()[:16]
        if mode == "weak":
            tag = "W/" + tag
        if mode == "redirect":
            return self.head(302, ("Location", "/elsewhere"), ("Content-Length", "0"))
        if mode == "garbage":
            body = b"<html>Please log in</html>"
        if mode == "foreign":
            body = b'{"payloadType":"%s","payload":"","signatures":[]}' % (b"x" * 90000)
        if mode == "large":
            self.head(200, ("Content-Length", "999999999"))
            while True:
                self.wfile.write(bytes(65536))
        if mode == "endless":
            self.head(200, ("Transfer-Encoding", "chunked"))
            while True:
                self.wfile.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
        if mode == "cut":
            self.head(200, ("Content-Length", str(len(body))), ("ETag", tag))
            self.wfile.write(body[: len(body) // 2])
            return None
        if mode not in ("garbage", "foreign") and self.headers.get("If-None-Match") == tag:
            return self.head(304, ("ETag", tag))
        self.head(200, ("Content-Length", str(len(body))), ("ETag", tag))
        self.wfile.write(body)
        return None

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass

    def finish_request(self, request, client_address):
        with context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(chain, key)
Server(("127.0.0.1", port), Handler).serve_forever()
