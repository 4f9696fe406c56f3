"""Replies to GET requests in every way that a server may, or may not, on loopback.

replies.py FOLDER: FOLDER holds good.pem, name.pem and stranger.pem, each a chain with its key. Prints one line of ports:
http, https with each of the three. Ends with its standard input.
"""
import socket
import ssl
import sys
import threading
import time

BODY = b"0123456789" * 10


def head(status, *fields):
    return ("HTTP/1.1 %s\r\n%s\r\n" % (status, "".join(f + "\r\n" for f in fields))).encode()


def forever(connection, piece, pause=0.0):
    while True:
        connection.sendall(piece)
        time.sleep(pause)


def reply(path, request, connection):
    """Writes the reply; returns whether the connection ends as it should (close_notify on TLS)."""
    send = connection.sendall
    length = "Content-Length: %d" % len(BODY)
    if path == "/whole":
        send(head("200 OK", length, 'ETag: "one"', "X-Twice: a", "x-twice: b") + BODY)
    elif path == "/conditional":
        known = b'if-none-match: "one"' in request.lower()
        send(head("304 Not Modified", 'ETag: "one"') if known else head("200 OK", length, 'ETag: "one"') + BODY)
    elif path.startswith("/echo"):
        send(head("200 OK", "Content-Length: %d" % len(request)) + request)
    elif path == "/empty":
        send(head("200 OK", "Content-Length: 0"))
    elif path == "/missing":
        send(head("404 Not Found", length) + BODY)
    elif path == "/redirect":
        send(head("302 Found", "Location: /whole", "Content-Length: 0"))
    elif path == "/hints":
        send(head("100 Continue") + head("200 OK", length) + BODY)
    elif path == "/hints-apart":
        send(head("100 Continue"))
        time.sleep(0.2)
        send(head("200 OK", length) + BODY)
        time.sleep(0.2)
    elif path == "/chunked":
        send(head("200 OK", "Transfer-Encoding: chunked"))
        for start in range(0, len(BODY), 30):
            piece = BODY[start : start + 30]
            send(b"%x\r\n%s\r\n" % (len(piece), piece))
        send(b"0\r\nX-Trailer: 1\r\n\r\n")
    elif path == "/chunked-cut":
        send(head("200 OK", "Transfer-Encoding: chunked") + b"1e\r\n" + BODY[:30] + b"\r\n")
    elif path == "/bad-chunk":
        send(head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n" + BODY + b"\r\n0\r\n\r\n")
    elif path == "/cut":
        send(head("200 OK", "Content-Length: 1000") + BODY)
    elif path == "/cut-rudely":
        send(head("200 OK", "Content-Length: 1000") + BODY)
        return False
    elif path == "/whole-rudely":
        send(head("200 OK", length) + BODY)
        return False
    elif path == "/until-end":
        send(head("200 OK", "Connection: close") + BODY)
    elif path == "/until-rude-end":
        send(head("200 OK", "Connection: close") + BODY)
        return False
    elif path == "/cut-head":
        send(b"HTTP/1.1 200 OK\r\nContent-Le")
    elif path == "/nothing":
        pass
    elif path == "/large":
        send(head("200 OK", "Content-Length: 999999999999"))
        forever(connection, BODY * 100)
    elif path == "/negative":
        send(head("200 OK", "Content-Length: -5") + BODY)
    elif path == "/endless":
        send(head("200 OK", "Connection: close"))
        forever(connection, BODY * 100)
    elif path == "/endless-chunks":
        send(head("200 OK", "Transfer-Encoding: chunked"))
        forever(connection, b"64\r\n" + BODY + b"\r\n")
    elif path == "/endless-head":
        send(b"HTTP/1.1 200 OK\r\n")
        forever(connection, b"X-Field: " + BODY + b"\r\n")
    elif path == "/endless-line":
        send(b"HTTP/1.1 200 ")
        forever(connection, BODY)
    elif path == "/endless-continue":
        forever(connection, head("100 Continue", "X-Field: " + "x" * 100), 0.001)
    elif path == "/slow-body":
        send(head("200 OK", "Content-Length: 1000"))
        forever(connection, b"x", 0.05)
    elif path == "/slow-head":
        send(b"HTTP/1.1 200 OK\r\nX: ")
        forever(connection, b"x", 0.05)
    elif path == "/silent":
        connection.recv(1)
    elif path == "/garbage":
        send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    elif path == "/strange-status":
        send(b"HTTP/1.1 abc OK\r\n\r\n")
    return True


def serve(raw, context):
    try:
        connection = raw
        if context is not None:
            if raw.recv(1, socket.MSG_PEEK) == b"":
                return
            connection = context.wrap_socket(raw, server_side=True)
        request = b""
        while b"\r\n\r\n" not in request:
            if request.startswith(b"\x16"):
                connection.sendall(head("400 Bad Request", "Content-Length: 0"))
                return
            more = connection.recv(4096)
            if not more:
                return
            request += more
        path = request.split(b" ")[1].decode()
        if reply(path, request, connection) and context is not None:
            connection.unwrap()
    except OSError:
        pass
    finally:
        raw.close()


def listen(context, mode="serve"):
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def accept():
        kept = []
        while True:
            connection, _ = listener.accept()
            if mode == "mute":
                kept.append(connection)
            elif mode == "reset":
                connection.recv(1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()
            else:
                threading.Thread(target=serve, args=(connection, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def tls(folder, name, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("%s/%s.pem" % (folder, name))
    if version is not None:
        context.minimum_version = context.maximum_version = version
        context.set_ciphers("ALL:@SECLEVEL=0")
    return context


folder = sys.argv[1]
ports = [listen(None)] + [listen(tls(folder, name)) for name in ("good", "name", "stranger", "expired")]
ports += [
    listen(tls(folder, "good", ssl.TLSVersion.TLSv1_2)),
    listen(tls(folder, "good", ssl.TLSVersion.TLSv1_1)),
    listen(None, "mute"),
    listen(None, "reset"),
]
print(*ports, flush=True)
sys.stdin.read()
