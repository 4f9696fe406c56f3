"""One HTTPS host: steady_server.py FOLDER VERSION, key and chain at FOLDER/server.pem, read anew for every
connection. Prints its port."""
import http.server
import sys
import time

from tls_server import Server


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"steady\n")


folder, version = sys.argv[1:3]
print(Server(Handler, f"{folder}/server.pem", version).start(), flush=True)
while True:
    time.sleep(60)
