"""Signs in as an OAuth 2.1 client does: PKCE (RFC 7636), pushed request (RFC 9126), DPoP with nonces (RFC 9449).

It knows nothing of Pinfold: urllib finds the proxy in HTTPS_PROXY and the authorities in SSL_CERT_FILE.

sign_in_client.py [FOLDER]: with FOLDER it stops after the pushed request until FOLDER/go exists. Each request is a line
of JSON; so is the end.
"""
import hashlib
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import proofs


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


opener = urllib.request.build_opener(Stay)
key = proofs.Key()
nonces = {}


def once(method, url, form, token, dpop):
    headers, proof = {}, None
    host = urllib.parse.urlsplit(url).hostname
    if dpop:
        proof = headers["DPoP"] = key.proof(method, url, nonces.get(host), token)
    if token:
        headers["Authorization"] = f"DPoP {token}"
    data = urllib.parse.urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    line = {"host": host, "path": urllib.parse.urlsplit(url).path, "proof": proof}
    try:
        answer = opener.open(request, timeout=15)
    except urllib.error.HTTPError as error:
        answer = error
    except OSError as error:
        print(json.dumps(dict(line, status=0, error=str(error))), flush=True)
        return 0, {}, {}
    body = answer.read()
    nonces[host] = answer.headers.get("DPoP-Nonce", nonces.get(host))
    print(json.dumps(dict(line, status=answer.status)), flush=True)
    return answer.status, answer.headers, json.loads(body) if body else {}


def ask(method, url, form=None, token=None, dpop=False):
    """One request, and once more with the nonce that the server wants (RFC 9449 section 8)."""
    status, headers, body = once(method, url, form, token, dpop)
    if body.get("error") == "use_dpop_nonce":
        status, headers, body = once(method, url, form, token, dpop)
    return status, headers, body


_, _, who = ask("GET", "https://identity.pinfold.test/resolve?handle=sam.pinfold.test")
_, _, resource = ask("GET", who["resource"] + "/.well-known/oauth-protected-resource")
_, _, server = ask("GET", resource["authorization_servers"][0] + "/.well-known/oauth-authorization-server")
verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
pushed = ask("POST", server["pushed_authorization_request_endpoint"], {
    "client_id": "https://app.pinfold.test/client.json", "response_type": "code", "state": state,
    "redirect_uri": "https://app.pinfold.test/callback", "scope": "profile", "code_challenge_method": "S256",
    "code_challenge": proofs.encode(hashlib.sha256(verifier.encode()).digest())}, dpop=True)[2]

if len(sys.argv) > 1:
    open(f"{sys.argv[1]}/paused", "w").close()
    end = time.monotonic() + 30
    while not os.path.exists(f"{sys.argv[1]}/go") and time.monotonic() < end:
        time.sleep(0.01)

where = server["authorization_endpoint"] + "?" + urllib.parse.urlencode(
    {"client_id": "https://app.pinfold.test/client.json", "request_uri": pushed["request_uri"]})
_, headers, _ = ask("GET", where)
back = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(headers.get("Location", "")).query))
granted = {}
if back.get("state") == state and back.get("iss") == server["issuer"]:
    granted = ask("POST", server["token_endpoint"], {
        "grant_type": "authorization_code", "code": back["code"], "code_verifier": verifier,
        "redirect_uri": "https://app.pinfold.test/callback"}, dpop=True)[2]
if "access_token" in granted:
    profile = ask("GET", who["resource"] + "/profile", token=granted["access_token"], dpop=True)[2]
else:
    profile = {}
    ask("GET", who["resource"] + "/.well-known/oauth-protected-resource")
ask("GET", "https://identity.pinfold.test/resolve?handle=sam.pinfold.test")
print(json.dumps({"subject": granted.get("sub"), "name": profile.get("name")}), flush=True)
