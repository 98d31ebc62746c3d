"""Attempts that took their process down: counted where the cause is known, and only there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.db.run import Steps, execute, operation
from fencerow.core.store.finish import Moved
from fencerow.core.store.reap import Reclaimed, settle


class Crash(msgspec.Struct, frozen=True):
    """An attempt whose child process died: `reason` says how, the job is due again `delay_s` seconds from now."""

    id: str
    attempt: int
    delay_s: float
    reason: str


@operation(repeatable=False)
def crash(outcomes: Sequence[Crash], *, holder: str) -> Steps[tuple[list[Reclaimed], list[Moved]]]:
    """Count a crash of each; returns what became of them, and the finished. The others wait as suspects."""
    document = msgspec.json.encode(outcomes).decode()
    rows = yield from execute("crash", outcomes=document, holder=holder)
    return (yield from settle(rows))


@operation(alone=True, repeatable=True)
def note_alone(job_id: str, *, holder: str, attempt: int) -> Steps[bool]:
    """Note that the attempt is about to run with its worker for itself; false means that it lost its job."""
    return bool((yield from execute("note_alone", id=job_id, holder=holder, attempt=attempt)))
