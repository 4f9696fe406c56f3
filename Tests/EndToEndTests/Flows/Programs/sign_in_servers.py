"""Three hosts of a sign-in: identity, authorization server, resource server.

sign_in_servers.py FOLDER VERSION: prints one line of JSON, role to port. Each host's key and chain are FOLDER/ROLE.pem,
read anew for every connection. Every request that arrives is a line of JSON on standard output.
"""
import hashlib
import http.server
import json
import secrets
import sys
import threading
import time
import urllib.parse

import proofs
from tls_server import Server

folder, version = sys.argv[1:3]
ORIGIN = {role: f"https://{role}.pinfold.test" for role in ("identity", "auth", "resource")}
nonces = {"auth": [], "resource": []}
requests, codes, tokens, seen = {}, {}, {}, set()
lock = threading.Lock()


def fresh_nonce(role):
    """A new nonce at each answer; the two newest are taken."""
    nonces[role] = [secrets.token_urlsafe(16)] + nonces[role][:1]
    return nonces[role][0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    role = ""

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, **fields):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self):
        target = urllib.parse.urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        form = dict(urllib.parse.parse_qsl(self.rfile.read(length).decode()))
        query = dict(urllib.parse.parse_qsl(target.query))
        with lock:
            line = {"role": self.role, "path": target.path, "proof": self.headers.get("DPoP")}
            print(json.dumps(line), flush=True)
            routes = {"identity": self.identity, "auth": self.auth, "resource": self.resource}
            routes[self.role](target.path, query, form)

    do_GET = do_POST = serve

    def identity(self, path, query, form):
        if path != "/resolve" or query.get("handle") != "sam.pinfold.test":
            return self.answer(404, {"error": "not_found"})
        return self.answer(200, {"did": "did:web:sam.pinfold.test", "resource": ORIGIN["resource"]})

    def proven(self, token=None):
        """The thumbprint of the proof's key; `None` when an error was answered."""
        try:
            url = ORIGIN[self.role] + urllib.parse.urlsplit(self.path).path
            return proofs.check(self.headers.get("DPoP", ""), self.command, url, nonces[self.role], seen, token)
        except (ValueError, KeyError) as error:
            word = str(error) if str(error) in ("use_dpop_nonce", "invalid_dpop_proof") else "invalid_dpop_proof"
            status = 400 if self.role == "auth" else 401
            self.answer(status, {"error": word}, DPoP_Nonce=fresh_nonce(self.role))
            return None

    def auth(self, path, query, form):
        if path == "/.well-known/oauth-authorization-server":
            return self.answer(200, {
                "issuer": ORIGIN["auth"], "authorization_endpoint": ORIGIN["auth"] + "/authorize",
                "token_endpoint": ORIGIN["auth"] + "/token",
                "pushed_authorization_request_endpoint": ORIGIN["auth"] + "/par",
                "require_pushed_authorization_requests": True, "code_challenge_methods_supported": ["S256"],
                "dpop_signing_alg_values_supported": ["ES256"]})
        if path == "/authorize":
            pushed = requests.pop(query.get("request_uri"), None)
            if pushed is None:
                return self.answer(400, {"error": "invalid_request"})
            code = secrets.token_urlsafe(16)
            codes[code] = pushed
            back = urllib.parse.urlencode({"code": code, "state": pushed["state"], "iss": ORIGIN["auth"]})
            return self.answer(302, {}, Location=f"{pushed['redirect_uri']}?{back}")
        if path == "/par":
            key = self.proven()
            if key is None:
                return None
            if form.get("code_challenge_method") != "S256" or not form.get("code_challenge"):
                return self.answer(400, {"error": "invalid_request"})
            uri = "urn:ietf:params:oauth:request_uri:" + secrets.token_urlsafe(16)
            requests[uri] = dict(form, key=key)
            return self.answer(201, {"request_uri": uri, "expires_in": 60}, DPoP_Nonce=fresh_nonce("auth"))
        if path == "/token":
            key = self.proven()
            if key is None:
                return None
            pushed = codes.pop(form.get("code"), None)
            challenge = proofs.encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
            if pushed is None or pushed["key"] != key or pushed["code_challenge"] != challenge:
                return self.answer(400, {"error": "invalid_grant"})
            token = secrets.token_urlsafe(24)
            tokens[token] = key
            body = {"access_token": token, "token_type": "DPoP", "expires_in": 300, "sub": "did:web:sam.pinfold.test"}
            return self.answer(200, body, DPoP_Nonce=fresh_nonce("auth"))
        return self.answer(404, {"error": "not_found"})

    def resource(self, path, query, form):
        if path == "/.well-known/oauth-protected-resource":
            body = {"resource": ORIGIN["resource"], "authorization_servers": [ORIGIN["auth"]]}
            return self.answer(200, body)
        if path != "/profile":
            return self.answer(404, {"error": "not_found"})
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme != "DPoP" or token not in tokens:
            return self.answer(401, {"error": "invalid_token"})
        key = self.proven(token)
        if key is None:
            return None
        if tokens[token] != key:
            return self.answer(401, {"error": "invalid_token"})
        return self.answer(200, {"name": "Sam"}, DPoP_Nonce=fresh_nonce("resource"))


ports = {}
for role in ORIGIN:
    kind = type(role, (Handler,), {"role": role})
    ports[role] = Server(kind, f"{folder}/{role}.pem", version).start()
print(json.dumps(ports), flush=True)
while True:
    time.sleep(60)
