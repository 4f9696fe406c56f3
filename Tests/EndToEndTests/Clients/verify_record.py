"""Verifies a pin record without any code of Pinfold: Python for the text, the openssl command for the signature.

usage: verify_record.py FORMAT KEY < RECORD       KEY is the base64 of the SPKI DER
Writes what the record says as JSON; exits with 1 when its signature does not hold.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile


def openssl(key, message, signature, digest):
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("key", key), ("message", message), ("signature", signature)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        if digest:
            command = ["dgst", "-" + digest, "-keyform", "DER", "-verify", "key", "-signature", "signature", "message"]
        else:
            command = ["pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", "key",
                       "-in", "message", "-sigfile", "signature"]
        done = subprocess.run(["openssl"] + command, cwd=folder, capture_output=True)
        if done.returncode != 0:
            sys.exit("the signature does not hold")


def integer(digits):
    number = int.from_bytes(digits, "big")
    body = number.to_bytes(number.bit_length() // 8 + 1, "big")
    return bytes([2, len(body)]) + body


def from_url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


format, key = sys.argv[1], base64.b64decode(sys.argv[2], validate=True)
record = json.loads(sys.stdin.read())
if format == "ed25519":
    names = ["domain", "pins", "created", "expires", "ttl_seconds", "keyId", "alg"]
    assert list(record) == names + ["signature"], list(record)
    signed = json.dumps({name: record[name] for name in names}, separators=(",", ":")).encode()
    openssl(key, signed, base64.b64decode(record["signature"], validate=True), None)
    said = {"domain": record["domain"], "pins": record["pins"], "ttl": record["ttl_seconds"], "key": record["keyId"]}
elif format == "jws":
    assert list(record) == ["jws"]
    header, payload, signature = record["jws"].split(".")
    signed, signature = (header + "." + payload).encode(), from_url(signature)
    header, payload = json.loads(from_url(header)), json.loads(from_url(payload))
    assert len(signature) == 64 and "=" not in record["jws"]
    if len(key) == 91:
        assert header["alg"] == "ES256"
        numbers = integer(signature[:32]) + integer(signature[32:])
        openssl(key, signed, bytes([0x30, len(numbers)]) + numbers, "sha256")
    else:
        assert header["alg"] == "EdDSA"
        openssl(key, signed, signature, None)
    assert payload["exp"] - payload["iat"] == payload["ttl_seconds"]
    pins = [base64.b64decode(pin, validate=True).hex() for pin in payload["pins"]]
    said = {"domain": payload["domain"], "pins": pins, "ttl": payload["ttl_seconds"], "key": header["kid"]}
else:
    assert sorted(record) == ["domain", "fingerprint", "signature", "ttl"]
    openssl(key, record["fingerprint"].encode(), base64.b64decode(record["signature"], validate=True), None)
    said = {"domain": record["domain"], "pins": [record["fingerprint"]], "ttl": record["ttl"], "key": ""}
print(json.dumps(said))
