"""The token itself: 256 random bits, which nobody but its bearer has. The database has its SHA-256."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

from fencerow.web.tokens.record import TokenRecord

PREFIX: Final = "fct_"  # by which scanners find one that was left in a file
BYTES: Final = 32
# 43 characters carry 258 bits: the last one has two that are always 0.
SHAPE: Final = re.compile(r"fct_[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]", re.ASCII)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was made just now. `token` is shown this once: nobody can read it from the database."""

    token: str = field(repr=False)
    record: TokenRecord


def new_token() -> str:
    """256 bits of the system's randomness, as text."""
    return PREFIX + secrets.token_urlsafe(BYTES)


def hash_of(token: str) -> str:
    """What the database keeps of a token. As it is random, a plain SHA-256 is enough: nobody can try them all.

    Nothing but hashes is ever compared. Nobody can choose how a hash begins, so how long that takes tells nothing.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def known_shape(token: object) -> bool:
    """Whether `new_token` may have made it. No other text can be a token, so nobody need look for it."""
    return isinstance(token, str) and SHAPE.fullmatch(token) is not None
