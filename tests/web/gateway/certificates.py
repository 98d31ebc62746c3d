"""Certificates that issue themselves, for tests."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NONE = serialization.NoEncryption()


@dataclass(frozen=True)
class Pair:
    """A certificate for 127.0.0.1 and a name that it issued itself, and its key."""

    cert: Path
    key: Path


def made(folder: Path, name: str, *, days: int = 1, locked: bool = False) -> Pair:
    """`days`: for how long it is valid yet; below 0, since when it is not any more."""
    key, who = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
    )
    whom = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName(name)]
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    cert = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(until - datetime.timedelta(days=30))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName(whom), critical=False)
        .sign(key, hashes.SHA256())
    )
    lock = serialization.BestAvailableEncryption(b"secret") if locked else NONE
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    pair.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    )
    return pair
