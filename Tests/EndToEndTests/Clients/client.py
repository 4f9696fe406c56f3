"""Fetches a URL through a proxy's CONNECT: client.py PROXY_PORT ROOT URL [KEY_LOG]; PROXY_USER may be user:password."""
import base64
import http.client
import os
import ssl
import sys
import urllib.parse

port, root, url = sys.argv[1:4]
target = urllib.parse.urlsplit(url)
context = ssl.create_default_context(cafile=root)
if len(sys.argv) > 4:
    context.keylog_filename = sys.argv[4]
connection = http.client.HTTPSConnection("127.0.0.1", int(port), context=context, timeout=15)
user = os.environ.get("PROXY_USER")
headers = {"Proxy-Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {}
connection.set_tunnel(target.hostname, target.port or 443, headers=headers)
connection.request("GET", target.path or "/")
answer = connection.getresponse()
sys.stdout.write(answer.read().decode())
sys.exit(0 if answer.status == 200 else 1)
