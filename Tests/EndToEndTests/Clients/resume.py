"""Fetches a URL twice through a proxy's CONNECT, the second time in the first one's session: resume.py PORT ROOT URL.

Prints the texts, and `resumed` or `full` for each connection.
"""
import socket
import ssl
import sys
import urllib.parse

port, root, url = sys.argv[1:4]
target = urllib.parse.urlsplit(url)
authority = f"{target.hostname}:{target.port or 443}"
context = ssl.create_default_context(cafile=root)
session = None
for _ in range(2):
    plain = socket.create_connection(("127.0.0.1", int(port)), timeout=15)
    plain.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += plain.recv(1)
    with context.wrap_socket(plain, server_hostname=target.hostname, session=session) as tunnel:
        tunnel.sendall(f"GET / HTTP/1.0\r\nHost: {target.hostname}\r\n\r\n".encode())
        while data := tunnel.recv(4096):
            sys.stdout.write(data.decode())
        session = tunnel.session
        print("resumed" if tunnel.session_reused else "full")
