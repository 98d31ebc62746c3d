"""A number from a seed: the same on every host and in every release, and evenly spread."""

from __future__ import annotations

import hashlib


def below(bound: int, *parts: object) -> int:
    """A whole number from 0 to `bound - 1`, fixed by the parts. Python's own hash differs in every process."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % bound
