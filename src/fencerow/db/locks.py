"""Locks by number that end with the transaction, and the numbers of keys."""

from __future__ import annotations

import hashlib

from fencerow.db.run import Steps, execute


def lock_number(namespace: str, key: str) -> int:
    """The 64-bit number of a key. Two keys of one number wait for each other: that costs time, never an answer.

    The namespace keeps different uses of one key apart. SHA-256, since 32-bit hashes were seen to collide
    within 200,000 keys.
    """
    digest = hashlib.sha256(f"fencerow:{namespace}:{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def take_lock(number: int) -> Steps[None]:
    """Wait until no other transaction holds this number; ours does until its end.

    In a statement of its own, and before anything is read that the lock shall protect.
    """
    yield from execute("take_lock", lock=number)


def try_lock(number: int) -> Steps[bool]:
    """Take the lock if nobody holds it, without waiting."""
    return bool((yield from execute("try_lock", lock=number))[0][0])
