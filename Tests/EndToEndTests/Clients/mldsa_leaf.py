"""A certificate with an ML-DSA-44 key that no OpenSSL here can make: mldsa_leaf.py LEAF ISSUER_KEY OUT

Takes a leaf (PEM, the first one of the file), puts another key into it and has its issuer sign it again; the other
certificates of the file follow. Writes OUT and prints the new key's pin.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys

leaf, issuer_key, out = sys.argv[1:4]
blocks = re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", open(leaf).read(), re.S)
der = base64.b64decode("".join(blocks[0].split("\n")[1:-2]))


def wrap(tag, body):
    size = len(body)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + body


def children(data):
    """The elements one behind the other, each with its header."""
    found = []
    while data:
        size, start = data[1], 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(data[2:start], "big")
        found.append(data[:start + size])
        data = data[start + size:]
    return found


def inside(element):
    return element[2 + (element[1] & 0x7F if element[1] & 0x80 else 0):]


signed, algorithm, _ = children(inside(der))
parts = children(inside(signed))
# id-ml-dsa-44, 2.16.840.1.101.3.4.3.17, and a public key of 1,312 bytes.
identifier = wrap(0x30, wrap(0x06, bytes.fromhex("608648016503040311")))
key = wrap(0x30, identifier + wrap(0x03, b"\0" + os.urandom(1312)))
parts[6] = key
signed = wrap(0x30, b"".join(parts))
signature = subprocess.run(
    ["openssl", "dgst", "-sha256", "-sign", issuer_key], input=signed, stdout=subprocess.PIPE, check=True).stdout
made = base64.encodebytes(wrap(0x30, signed + algorithm + wrap(0x03, b"\0" + signature))).decode()
with open(out, "w") as file:
    file.write(f"-----BEGIN CERTIFICATE-----\n{made}-----END CERTIFICATE-----\n" + "".join(blocks[1:]))
print("sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode())
