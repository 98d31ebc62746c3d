"""`Sign`: payloads that stay readable, with a signature that tells when they were altered."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

from fencerow.payloads.keys import check_keys, known_key, read_keys

SECRET_BYTES = 32


class Sign:
    """Signs payloads with HMAC-SHA-256: `App(seal=Sign({"2026-11": key}))`. Needs no library.

    `keys`: secrets of at least 32 bytes by their ids. The first one signs, and all of them are accepted.
    `accepts_plain`: whether payloads are read that were stored before, without a signature; anybody who can write to
    the database can store such.

    Raises:
        ConfigError: a key cannot be used.
    """

    def __init__(self, keys: Mapping[str, bytes], *, accepts_plain: bool = False) -> None:
        self._keys = check_keys(keys, SECRET_BYTES, None)
        self._first = next(iter(self._keys))
        self._accepts_plain = accepts_plain

    @staticmethod
    def from_file(path: str | Path, *, accepts_plain: bool = False) -> Sign:
        """The same with keys from a TOML file: a table `keys` in order, each a secret in base64.

        Raises:
            ConfigError: the file cannot be read, or has no such keys. Secrets in it are never shown.
        """
        return Sign(read_keys(path)[0], accepts_plain=accepts_plain)

    def __repr__(self) -> str:
        return f"<Sign {', '.join(self._keys)}>"

    @property
    def accepts_plain(self) -> bool:
        """Whether payloads are read that were stored without a signature."""
        return self._accepts_plain

    def sign(self, data: bytes) -> tuple[str, str]:
        """The first key's id, and the signature."""
        return self._first, _signature(self._keys[self._first], self._first, data)

    def verify(self, key: str, data: bytes, signature: str) -> bool:
        """Whether the signature is that of the data.

        Raises:
            SealKeyUnknown: there is no key of this id.
        """
        wanted = _signature(known_key(self._keys, key), key, data)
        return hmac.compare_digest(wanted.encode(), signature.encode())


def _signature(secret: bytes, key: str, data: bytes) -> str:
    return hmac.digest(secret, b"fencerow sign 1\n" + key.encode() + b"\n" + data, hashlib.sha256).hex()
