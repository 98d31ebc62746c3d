"""Secrets by their ids, checked, and read from a file. None of them is ever shown."""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fencerow.core.errors import ConfigError, SealKeyUnknown
from fencerow.core.model.packing import KEY_LENGTH_MAX

ID = re.compile(rf"[A-Za-z0-9._-]{{1,{KEY_LENGTH_MAX}}}")
MAKE = 'make one with: python -c "import base64, secrets; print(base64.b64encode(secrets.token_bytes(32)).decode())"'


def check_keys(keys: Mapping[str, bytes], least: int, most: int | None) -> dict[str, bytes]:
    """The keys, if every one can be used.

    Raises:
        ConfigError: there is none, or one of them cannot.
    """
    given: object = keys
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(
            f"keys is {'empty' if isinstance(given, Mapping) else f'of type {type(given).__name__}'}",
            "a mapping of ids to secrets is expected, the one that seals first",
            'pass {"2026-11": secret}',
        )
    for key in given:
        if not isinstance(key, str) or not ID.fullmatch(key):
            raise ConfigError(
                f"the id of a key is {ascii(key)[:80]}",
                f"it is stored beside each payload: 1 to {KEY_LENGTH_MAX} letters, digits and . _ -",
                "choose another id, such as a month",
            )
    return {key: check_secret(secret, f"the key {key}", least, most) for key, secret in keys.items()}


def check_secret(secret: object, what: str, least: int, most: int | None = None) -> bytes:
    """The secret, if it is long enough.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(secret, bytes) or len(secret) < least or (most is not None and len(secret) > most):
        found = (
            f"has {len(secret)} bytes" if isinstance(secret, bytes) else f"is of type {type(secret).__name__}"
        )
        wanted = f"{'exactly' if most == least else 'at least'} {least} random bytes are expected"
        raise ConfigError(f"{what} {found}", wanted, MAKE)
    return secret


def known_key(keys: Mapping[str, bytes], key: str) -> bytes:
    """The secret of this id.

    Raises:
        SealKeyUnknown: there is none.
    """
    found = keys.get(key)
    if found is None:
        raise SealKeyUnknown(
            f"the key {key[:KEY_LENGTH_MAX]!r} is not known here",
            f"a payload was stored under it; this program has {', '.join(keys)}",
            "give the program the key again until nothing stored under it is left",
        )
    return found


def read_keys(path: str | Path) -> tuple[dict[str, bytes], bytes | None]:
    """The secrets in a TOML file: those of the table `keys` in order, and `marks` if it is there.

    Raises:
        ConfigError: the file cannot be read, or is another one.
    """
    try:
        found = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"the keys in {path} cannot be read", str(error.strerror), "correct the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise _unfit(path, "it is no TOML") from None
    keys = found.get("keys")
    if not isinstance(keys, dict):
        raise _unfit(path, "it has no table [keys]")
    marks = found.get("marks")
    secrets = {str(key): _decoded(path, key, text) for key, text in keys.items()}
    return secrets, None if marks is None else _decoded(path, "marks", marks)


def _decoded(path: str | Path, name: str, text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError, binascii.Error):
        raise _unfit(path, f"{name} is no base64") from None


def _unfit(path: str | Path, why: str) -> ConfigError:
    return ConfigError(
        f"the file {path} has no keys that can be used: {why}", 'a line is: "2026-11" = "…"', MAKE
    )
