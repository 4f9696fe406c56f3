"""Makes a session at one URL and offers it at another: offer_session.py PROXY_PORT ROOT FIRST SECOND_URL [KEY_LOG] [--old].

FIRST is a URL, or a port of 127.0.0.1 for a session that the proxy has not seen made. With --old the session is one of
TLS 1.2, offered by a hello that offers TLS 1.3 as well.

Prints `resumed` or `full`; ends with 1 when the second connection was refused, with 2 when anything before failed.
"""
import socket
import ssl
import sys
import urllib.parse

is_old = "--old" in sys.argv
arguments = [word for word in sys.argv[1:] if word != "--old"]
port, root, first, second = arguments[:4]
context = ssl.create_default_context(cafile=root)
if len(arguments) > 4:
    context.keylog_filename = arguments[4]
if is_old:
    context.maximum_version = ssl.TLSVersion.TLSv1_2


def open_tunnel(host):
    tunnel = socket.create_connection(("127.0.0.1", int(port)), timeout=15)
    tunnel.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
    reply = b""
    while b"\r\n\r\n" not in reply:
        more = tunnel.recv(1)
        if not more:
            raise OSError("the proxy closed")
        reply += more
    return tunnel


def fetch(host, connection, session):
    secure = context.wrap_socket(connection, server_hostname=host, session=session)
    secure.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    while secure.recv(65536):
        pass
    return secure


host = urllib.parse.urlsplit(second).hostname
try:
    if first.isdigit():
        made = fetch(host, socket.create_connection(("127.0.0.1", int(first)), timeout=15), None)
    else:
        other = urllib.parse.urlsplit(first).hostname
        made = fetch(other, open_tunnel(other), None)
    session = made.session
    if not session.has_ticket and not (is_old and session.id):
        raise OSError("no session came")
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
context.maximum_version = ssl.TLSVersion.MAXIMUM_SUPPORTED
try:
    print("resumed" if fetch(host, open_tunnel(host), session).session_reused else "full")
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(1)
