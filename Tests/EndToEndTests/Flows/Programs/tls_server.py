"""HTTPS on loopback whose certificate can be exchanged while it runs: each connection reads its file anew."""
import http.server
import socketserver
import ssl
import threading


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Serves `handler` with the key and chain that lie in the file `identity` when a connection begins."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler, identity, version=None):
        super().__init__(("127.0.0.1", 0), handler)
        self.identity, self.version = identity, version

    def finish_request(self, request, address):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self.version:
            context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, self.version)
        context.load_cert_chain(self.identity)
        request.settimeout(15)
        try:
            with context.wrap_socket(request, server_side=True) as wrapped:
                super().finish_request(wrapped, address)
                wrapped.unwrap()
        except (OSError, ValueError):
            pass  # a peer that leaves is no business of the test's

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self.server_address[1]
