"""Ids of jobs, workers and events: UUIDv7, made by the client, so that a submit can be repeated."""

from __future__ import annotations

import os
import re
import sys
import threading

from fencerow.core.errors import InvalidInput
from fencerow.db.forks import MadeAnew

SHAPE = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII)
LOW_BITS = 0x7FFFFFFF
DIGITS = 32


def new_ids(count: int) -> list[str]:
    """So many new ids, in their order, for much less than `new_id` costs each.

    They are one new id and those that follow it: the counter of a UUIDv7 stands above its last 32 bits, so the
    next id that anybody in this process makes is later than all of them.
    """
    first = new_id()
    head, tail = (
        first[:-8],
        int(first[-8:], 16) & LOW_BITS,
    )  # so that counting up never carries into the counter
    return [f"{head}{number:08x}" for number in range(tail, tail + count)]


def may_be_ours(job_id: str) -> bool:
    """Whether `new_id` may have made this id: it is a UUIDv7. Those of other versions are somebody else's."""
    return job_id[14] == "7"


def parse_id(text: object) -> str:
    """The canonical form of an id: lower case with hyphens. Upper case and plain hex are understood.

    Any UUID version is accepted, because a caller may bring ids of its own.

    Raises:
        InvalidInput: it is no UUID.
    """
    lowered = text.strip().lower() if isinstance(text, str) else ""
    if not SHAPE.fullmatch(lowered):
        raise InvalidInput(
            f"{_shown(text)} is not an id",
            "an id is a UUID such as 0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e",
            "copy the id that submit returned",
        )
    return hyphened(lowered.replace("-", ""))


def hyphened(digits: str) -> str:
    """An id of 32 digits as we write it."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _shown(text: object) -> str:
    if not isinstance(text, str):
        return f"a value of type {type(text).__name__}"
    return ascii(text if len(text) <= 60 else text[:60] + "...")


if sys.version_info >= (3, 14):
    from uuid import uuid7

    _making = threading.Lock()

    def new_id() -> str:
        """A new id, later in order than every id this process made before, on whichever thread."""
        # The standard library keeps its counter in module globals without a lock.
        with _making:
            return str(uuid7())

    def _after_fork() -> None:
        # A thread of the parent may have held the lock at the fork; in the child nobody would release it.
        global _making
        _making = threading.Lock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)

else:
    import uuid_utils

    class _Maker(threading.local, MadeAnew):
        """Of this thread. A child that inherits the generator's state would make the ids of its parent and siblings."""

        def _forget(self) -> None:
            uuid_utils.reseed_rng()

        def new_id(self) -> str:
            """A new id, later in order than every id this process made before, on whichever thread."""
            self._check_process()
            return str(uuid_utils.uuid7())

    new_id = _Maker().new_id
