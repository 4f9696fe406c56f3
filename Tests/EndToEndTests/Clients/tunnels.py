"""Opens tunnels one after another: tunnels.py PROXY_PORT ROOT COUNT [OPTIONS]

Each asks for `/NUMBER` and prints `NUMBER NAME`, the common name of whoever served it, or `NUMBER refused`. With
`--sessions-of` each offers a fresh TLS 1.3 session, made beforehand at that port of 127.0.0.1 without the proxy.
`--from` is the client's own address, `--host` whom it asks for, `--sni` whom it names to the server, `--user` its
`name:password` for the proxy; with `--tls12` it speaks no newer version, with `--rsa` it takes RSA certificates only, and
with `--ciphers` those suites.
"""
import base64
import argparse
import socket
import ssl

parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("root")
parser.add_argument("count", type=int)
parser.add_argument("--key-log")
parser.add_argument("--sessions-of", type=int)
parser.add_argument("--from", dest="source", default="127.0.0.1")
parser.add_argument("--host", default="api.pinfold.test")
parser.add_argument("--sni")
parser.add_argument("--user")
parser.add_argument("--tls12", action="store_true")
parser.add_argument("--rsa", action="store_true")
parser.add_argument("--ciphers")
arguments = parser.parse_args()
HOST = arguments.host
context = ssl.create_default_context(cafile=arguments.root)
if arguments.tls12 or arguments.rsa:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
if arguments.rsa:
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
if arguments.ciphers:
    context.set_ciphers(arguments.ciphers)
if arguments.sni:
    context.check_hostname = False
if arguments.key_log:
    context.keylog_filename = arguments.key_log


def ask(connection, path, session=None):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with context.wrap_socket(connection, server_hostname=arguments.sni or HOST, session=session) as secure:
        secure.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while more := secure.recv(65536):
            answer += more
        if not answer.startswith(b"HTTP/1.1 "):
            raise OSError("no answer")
        subject = {key: value for pairs in secure.getpeercert()["subject"] for key, value in pairs}
        return subject["commonName"], secure.session


def tunnel():
    connection = socket.create_connection(("127.0.0.1", arguments.port), timeout=15, source_address=(arguments.source, 0))
    fields = ""
    if arguments.user:
        fields = f"Proxy-Authorization: Basic {base64.b64encode(arguments.user.encode()).decode()}\r\n"
    connection.sendall(f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n{fields}\r\n".encode())
    reply = b""
    while b"\r\n\r\n" not in reply:
        more = connection.recv(1)
        if not more:
            raise OSError("the proxy closed")
        reply += more
    if b" 200" not in reply.split(b"\r\n")[0]:
        raise SystemExit(f"no tunnel: {reply!r}")
    return connection


for number in range(arguments.count):
    session = None
    if arguments.sessions_of:
        direct = socket.create_connection(("127.0.0.1", arguments.sessions_of), timeout=15)
        session = ask(direct, "/session")[1]
    connection = tunnel()
    try:
        print(number, ask(connection, f"/{number}", session)[0])
    except OSError:
        connection.close()
        print(number, "refused")
