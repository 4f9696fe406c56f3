"""DPoP proofs (RFC 9449): JSON Web Tokens by ES256 (RFC 7518 section 3.4), with the openssl command for the curve."""
import base64
import hashlib
import json
import os
import subprocess
import tempfile
import time
import uuid

# DER of a SubjectPublicKeyInfo on P-256 up to its point (RFC 5480).
PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=False)


def temporary(data):
    handle, path = tempfile.mkstemp()
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return path


class Key:
    """The client's key, drawn anew."""

    def __init__(self):
        pem = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256").stdout
        self.path = temporary(pem)
        point = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER").stdout[len(PREFIX):]
        self.jwk = {"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}

    def proof(self, method, url, nonce=None, token=None):
        claims = {"jti": str(uuid.uuid4()), "htm": method, "htu": url.split("?")[0], "iat": int(time.time())}
        if nonce:
            claims["nonce"] = nonce
        if token:
            claims["ath"] = encode(hashlib.sha256(token.encode()).digest())
        head = {"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk}
        signed = ".".join(encode(json.dumps(part).encode()) for part in (head, claims))
        der = openssl("dgst", "-sha256", "-sign", self.path, data=signed.encode()).stdout
        return signed + "." + encode(raw(der))


def raw(der):
    """The two numbers of a DER signature, 32 bytes each."""
    numbers, rest = [], der[2:]
    for _ in range(2):
        length = rest[1]
        numbers.append(int.from_bytes(rest[2:2 + length], "big").to_bytes(32, "big"))
        rest = rest[2 + length:]
    return b"".join(numbers)


def der(signature):
    body = b""
    for half in (signature[:32], signature[32:]):
        digits = half.lstrip(b"\0") or b"\0"
        if digits[0] >= 0x80:
            digits = b"\0" + digits
        body += bytes([2, len(digits)]) + digits
    return bytes([0x30, len(body)]) + body


def thumbprint(jwk):
    """RFC 7638."""
    members = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    return encode(hashlib.sha256(json.dumps(members, separators=(",", ":"), sort_keys=True).encode()).digest())


def check(proof, method, url, nonces, seen, token=None):
    """The thumbprint of the proof's key; raises ValueError with the error of RFC 9449 section 7.1 otherwise."""
    head, claims, signature = proof.split(".")
    signed = f"{head}.{claims}".encode()
    head, claims = json.loads(decode(head)), json.loads(decode(claims))
    point = b"\4" + decode(head["jwk"]["x"]) + decode(head["jwk"]["y"])
    key, sent = temporary(PREFIX + point), temporary(der(decode(signature)))
    try:
        verified = openssl("dgst", "-sha256", "-keyform", "DER", "-verify", key, "-signature", sent, data=signed)
    finally:
        os.unlink(key)
        os.unlink(sent)
    if verified.returncode != 0 or head["alg"] != "ES256" or head["typ"] != "dpop+jwt":
        raise ValueError("invalid_dpop_proof")
    if claims["htm"] != method or claims["htu"] != url or abs(time.time() - claims["iat"]) > 60:
        raise ValueError("invalid_dpop_proof")
    if claims["jti"] in seen:
        raise ValueError("invalid_dpop_proof")
    if token and claims.get("ath") != encode(hashlib.sha256(token.encode()).digest()):
        raise ValueError("invalid_dpop_proof")
    if claims.get("nonce") not in nonces:
        raise ValueError("use_dpop_nonce")
    seen.add(claims["jti"])
    return thumbprint(head["jwk"])
