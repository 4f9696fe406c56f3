"""A TLS 1.3 server that says what it is told to: played_server.py PORT SECRET ORDERS

ORDERS is a file, read for each connection: the plan, the chain to show, the key that signs and, where a delegated
credential is to be shown, its key, each on a line of its own.

Nothing is agreed on: the server's handshake secret is SECRET (hex), which the test logs in the client's name. What a
reader of the key log can check (the flight, its signature, its Finished) is right but for what PLAN changes. It is a
second implementation on purpose: hashlib, hmac and the openssl command, with ChaCha20-Poly1305 (RFC 8439) written out.
"""
import datetime
import hashlib
import hmac
import os
import re
import socket
import subprocess
import sys
import threading
import zlib

port, secret, orders = int(sys.argv[1]), bytes.fromhex(sys.argv[2]), sys.argv[3]
plan = chain_file = key_file = credential_key = None


def run(*arguments, data=b""):
    return subprocess.run(arguments, input=data, stdout=subprocess.PIPE, check=True).stdout


def certificates(path):
    found = re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", open(path).read(), re.S)
    return [run("openssl", "x509", "-outform", "der", data=one.encode()) for one in found]


def number(value, width):
    return value.to_bytes(width, "big")


def vector(data, width):
    return number(len(data), width) + data


def message(kind, body):
    return bytes([kind]) + vector(body, 3)


# ChaCha20-Poly1305.
def block(key, counter, nonce):
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    for part in (key, number(counter, 4)[::-1], nonce):
        start += [int.from_bytes(part[i:i + 4], "little") for i in range(0, len(part), 4)]
    state = start[:]

    def quarter(a, b, c, d):
        for one, other, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[one] = (state[one] + state[other]) & 0xFFFFFFFF
            value = state[mixed] ^ state[one]
            state[mixed] = (value << turn | value >> (32 - turn)) & 0xFFFFFFFF

    for _ in range(10):
        for lane in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
            quarter(*lane)
        for lane in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(*lane)
    return b"".join(((x + y) & 0xFFFFFFFF).to_bytes(4, "little") for x, y in zip(state, start))


def seal(key, nonce, data, plain):
    stream = b"".join(block(key, 1 + i, nonce) for i in range((len(plain) + 63) // 64))
    sealed = bytes(a ^ b for a, b in zip(plain, stream))
    once = block(key, 0, nonce)[:32]
    r = int.from_bytes(once[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    pad = lambda text: text + bytes(-len(text) % 16)
    text = pad(data) + pad(sealed) + len(data).to_bytes(8, "little") + len(sealed).to_bytes(8, "little")
    total = 0
    for i in range(0, len(text), 16):
        total = (total + int.from_bytes(text[i:i + 16] + b"\1", "little")) * r % (2**130 - 5)
    tag = (total + int.from_bytes(once[16:], "little")) % 2**128
    return sealed + tag.to_bytes(16, "little")


def expand(label, count):
    info = number(count, 2) + vector(b"tls13 " + label, 1) + vector(b"", 1)
    return hmac.new(secret, info + b"\1", "sha256").digest()[:count]


class Records:
    """Seals handshake bytes, one record a call."""

    def __init__(self):
        self.key, self.iv, self.count = expand(b"key", 32), expand(b"iv", 12), 0

    def seal(self, content, kind=22, padding=0):
        nonce = bytes(a ^ b for a, b in zip(self.iv, bytes(4) + number(self.count, 8)))
        self.count += 1
        inner = content + bytes([kind]) + bytes(padding)
        header = bytes([23, 3, 3]) + number(len(inner) + 16, 2)
        return header + seal(self.key, nonce, header, inner)


def signature(content, key):
    return run("openssl", "dgst", "-sha256", "-sign", key, data=content)


def proof(context, transcript, key):
    return signature(b" " * 64 + context + b"\0" + transcript, key)


def credential(leaf):
    """RFC 9345 §4: valid for an hour, signed by the leaf's key (or, by plan, by its own)."""
    begin = run("openssl", "x509", "-inform", "der", "-noout", "-startdate", data=leaf).decode().strip().split("=")[1]
    begin = datetime.datetime.strptime(begin, "%b %d %H:%M:%S %Y %Z").replace(tzinfo=datetime.timezone.utc)
    seconds = int((datetime.datetime.now(datetime.timezone.utc) - begin).total_seconds())
    lasting = {"old credential": -60, "long credential": 8 * 86400}.get(plan, 3600)
    public = run("openssl", "pkey", "-in", credential_key, "-pubout", "-outform", "der")
    signed = number(max(seconds + lasting, 0), 4) + b"\x04\x03" + vector(public, 3) + b"\x04\x03"
    issuer = credential_key if plan == "own credential" else key_file
    return signed + vector(proof(b"TLS, server delegated credentials", leaf + signed, issuer), 2)


# SHA-256 of "HelloRetryRequest" (RFC 8446 §4.1.3).
RETRY = hashlib.sha256(b"HelloRetryRequest").digest()


def retry(hello, cookie):
    """A HelloRetryRequest message that asks for nothing but the cookie back."""
    extensions = b"\0\x2b\0\2\3\4" + b"\0\x2c" + vector(vector(cookie, 2), 2)
    return message(2, b"\3\3" + RETRY + vector(session_of(hello), 1) + b"\x13\x03\0" + vector(extensions, 2))


def session_of(hello):
    return hello[39:39 + hello[38]]


def flight(hello, before=b""):
    """The answer to a ClientHello message: the ServerHello record and the sealed ones behind it."""
    session = session_of(hello)
    extensions = b"\0\x2b\0\2\3\4" + b"\0\x33" + vector(b"\0\x1d" + vector(os.urandom(32), 2), 2)
    body = b"\3\3" + os.urandom(32) + vector(session, 1) + b"\x13\x03\0" + vector(extensions, 2)
    server_hello = message(2, body)
    transcript = before + hello + server_hello
    own = b"\0\0\0\0" if plan == "extension twice" else b""
    parts = [message(8, vector(own + own, 2))]
    if plan == "asks for a certificate":
        parts.append(message(13, b"\0" + vector(b"\0\x0d\0\4\0\2\4\3", 2)))
    chain = certificates(chain_file)
    entries = b""
    for index, one in enumerate(chain):
        shown = b"\0\x22" + vector(credential(one), 2) if credential_key and index == 0 else b""
        entries += vector(one, 3) + vector(shown, 2)
    shown = b"\0" + vector(entries, 3)
    if plan.startswith("compressed"):
        announced = 1 << 23 if plan == "compressed bomb" else len(shown) + (plan == "compressed, wrong length")
        packed = zlib.compress(bytes(1 << 23) if plan == "compressed bomb" else shown)
        parts.append(message(25, b"\0\1" + number(announced, 3) + vector(packed, 3)))
    else:
        parts.append(message(11, shown))
    if plan == "certificate twice":
        parts.append(parts[-1])
    digest = hashlib.sha256(transcript + b"".join(parts)).digest()
    if plan.startswith("ML-DSA"):
        parts.append(message(15, b"\x09\x04" + vector(os.urandom(2420), 2)))
    else:
        content = b"TLS 1.3, client CertificateVerify" if plan == "client's context" else b"TLS 1.3, server CertificateVerify"
        parts.append(message(15, b"\4\3" + vector(proof(content, digest, credential_key or key_file), 2)))
    if plan == "no verify":
        parts.pop()
    digest = hashlib.sha256(transcript + b"".join(parts)).digest()
    finished = hmac.new(expand(b"finished", 32), digest, "sha256").digest()
    parts.append(message(20, bytes(32) if plan == "wrong Finished" else finished))
    records = Records()
    clear = b"\x16\3\3" + vector(server_hello, 2)
    return clear + b"\x14\3\3\0\1\1" + sealed(records, b"".join(parts), parts)


def sealed(records, whole, parts):
    if plan == "byte by byte":
        return b"".join(records.seal(whole[i:i + 1]) for i in range(len(whole)))
    if plan == "padded":
        return b"".join(records.seal(part, padding=200) for part in parts)
    if plan == "empty record":
        return records.seal(whole[:20]) + records.seal(b"") + records.seal(whole[20:])
    if plan == "padding alone in front":
        return records.seal(b"", kind=0, padding=20) + records.seal(whole)
    if plan == "a record of more than may be":
        # The content type makes it one byte more than RFC 8446 §5.4 allows.
        return records.seal(whole, padding=2**14 + 1 - len(whole))
    if plan == "alert inside":
        return records.seal(whole[:20]) + records.seal(b"\1\x5a", kind=21) + records.seal(whole[20:])
    if plan == "data inside":
        return records.seal(parts[0]) + records.seal(b"data", kind=23) + records.seal(b"".join(parts[1:]))
    if plan == "ticket behind":
        return records.seal(whole + message(4, bytes(16)))
    if plan == "in the clear":
        return b"\x16\3\3" + vector(whole, 2)
    if plan == "half":
        return records.seal(whole[:len(whole) // 2])
    return records.seal(whole)


def read_orders():
    global plan, chain_file, key_file, credential_key
    plan, chain_file, key_file, credential_key = (open(orders).read().split("\n") + [""])[:4]


def read_hello(connection):
    """The next ClientHello message, which comes in one record; a ChangeCipherSpec before it is passed over."""
    while True:
        header = connection.recv(5, socket.MSG_WAITALL)
        if len(header) < 5:
            raise OSError("the client closed")
        body = connection.recv(int.from_bytes(header[3:], "big"), socket.MSG_WAITALL)
        if header[0] == 22:
            return body


def serve(connection):
    with connection:
        try:
            hello = read_hello(connection)
            read_orders()
            before = b""
            if plan.startswith("cookie"):
                cookie = os.urandom(40)
                request = retry(hello, cookie)
                connection.sendall(b"\x16\3\3" + vector(request, 2))
                before = message(254, hashlib.sha256(hello).digest()) + request
                hello = read_hello(connection)
                if cookie not in hello:
                    return
            connection.sendall(flight(hello, before))
            while plan != "half" and connection.recv(65536):
                pass
        except OSError:
            pass


listener = socket.create_server(("127.0.0.1", port))
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
