"""`Seal`: payloads encrypted with AES-256-GCM. The id of each key stands beside what it sealed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fencerow.core.errors import MissingExtra, PayloadAltered
from fencerow.payloads.keys import check_keys, check_secret, known_key, read_keys

SECRET_BYTES = 32
SALT_BYTES, NONCE_BYTES = 16, 12


class Seal:
    """Encrypts payloads, so that the database shows none: `App(seal=Seal({"2026-11": key}, marks=secret))`.

    `keys`: secrets of 32 bytes by their ids. The first one seals, and all of them open, so a new key is put in front
    and an old one taken out when nothing sealed under it is left. `marks`: one more secret of at least 32 bytes, for
    the keyed hashes by which equal arguments are known (idempotency keys, `unique=True`, repeated ids); it must stay as
    long as those live. `accepts_plain`: whether payloads are read that were stored before, without a seal; anybody who
    can write to the database can store such.

    Each payload has an encryption key and a nonce of its own, derived from the payload, what it is bound to, and
    `marks`: the same payload of the same job is sealed alike, and no number of payloads wears a key out.

    Raises:
        ConfigError: a key cannot be used. MissingExtra: `cryptography` is not installed.
    """

    def __init__(self, keys: Mapping[str, bytes], *, marks: bytes, accepts_plain: bool = False) -> None:
        self._keys = check_keys(keys, SECRET_BYTES, SECRET_BYTES)
        self._marks = check_secret(marks, "marks", SECRET_BYTES)
        self._first = next(iter(self._keys))
        self._accepts_plain = accepts_plain
        self._cipher = _cipher()

    @staticmethod
    def from_file(path: str | Path, *, accepts_plain: bool = False) -> Seal:
        """The same with keys from a TOML file: `marks`, and a table `keys` in order, each a secret in base64.

        Raises:
            ConfigError: the file cannot be read, or has no such keys. Secrets in it are never shown.
        """
        keys, marks = read_keys(path)
        return Seal(keys, marks=marks or b"", accepts_plain=accepts_plain)

    def __repr__(self) -> str:
        return f"<Seal {', '.join(self._keys)}>"

    @property
    def accepts_plain(self) -> bool:
        """Whether payloads are read that were stored without a seal."""
        return self._accepts_plain

    def seal(self, plain: bytes, bound: bytes) -> tuple[str, bytes]:
        """The first key's id, and the salt, the nonce and the encrypted payload."""
        once = self._keyed(b"once", bound + b"\n" + plain)
        salt, nonce = once[:SALT_BYTES], once[SALT_BYTES : SALT_BYTES + NONCE_BYTES]
        cipher = self._cipher(_derived(self._keys[self._first], salt))
        return self._first, salt + nonce + bytes(cipher.encrypt(nonce, plain, _beside(self._first, bound)))

    def open(self, key: str, sealed: bytes, bound: bytes) -> bytes:
        """The plain payload.

        Raises:
            SealKeyUnknown: there is no key of this id. PayloadAltered: it was changed, or sealed for something else.
        """
        from cryptography.exceptions import InvalidTag

        secret = known_key(self._keys, key)
        salt, nonce, text = (
            sealed[:SALT_BYTES],
            sealed[SALT_BYTES : SALT_BYTES + NONCE_BYTES],
            sealed[SALT_BYTES + NONCE_BYTES :],
        )
        try:
            return bytes(self._cipher(_derived(secret, salt)).decrypt(nonce, text, _beside(key, bound)))
        except (InvalidTag, ValueError):
            raise PayloadAltered(
                "a sealed payload does not open",
                f"it was changed, or sealed for another job, or the key {key!r} is another one now",
                "find out who wrote to the database; then submit the work again",
            ) from None

    def mark(self, data: bytes) -> str:
        """A keyed hash of the data."""
        return self._keyed(b"mark", data).hex()

    def _keyed(self, use: bytes, data: bytes) -> bytes:
        return hmac.digest(self._marks, b"fencerow " + use + b" 1\n" + data, hashlib.sha256)


def _derived(secret: bytes, salt: bytes) -> bytes:
    """The key of one payload."""
    return hmac.digest(secret, b"fencerow seal 1\n" + salt, hashlib.sha256)


def _beside(key: str, bound: bytes) -> bytes:
    """What is authenticated with the payload, and not stored with it."""
    return key.encode() + b"\n" + bound


def _cipher() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtra(
            "payloads cannot be sealed",
            "the library cryptography is not installed",
            'pip install "fencerow[seal]"',
        ) from None
    return AESGCM
