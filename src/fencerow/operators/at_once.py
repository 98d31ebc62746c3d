"""Moves of many jobs in one transaction, by the statements that move one job.

Rows that a stranger has locked are left, and rows that the guards refuse: an id that is missing in the answer is
moved alone, which waits, or says why not. So no such move waits for another one, and none is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.core.store.attempts import MovedJob, Requeued, archive, requeued_rows
from fencerow.core.store.moves import CANCEL_PATIENCE_S, forget_notes, key_document
from fencerow.db.run import Row, Steps, execute, first_column, operation, text_or_none


@dataclass(frozen=True, slots=True)
class CancelledMany:
    """What a cancel of many did: those that never run again, and those whose holder was asked, with the holder."""

    moved: list[MovedJob]
    asked: dict[str, str]


@operation(patience_s=CANCEL_PATIENCE_S)
def cancel_many(
    ids: Sequence[str], *, actor: str | None, reason: str | None = None, only_queued: bool = False
) -> Steps[CancelledMany]:
    """Cancel jobs that nobody runs, and ask the holders of those that run (not with `only_queued`).

    Repeating it after an unknown outcome is harmless.

    Raises:
        Busy: a key of one of them is locked. Nothing was done; cancel them one by one.
    """
    free = first_column((yield from execute("lock_live", ids=list(ids))))
    if not free:
        return CancelledMany([], {})
    idle = first_column((yield from execute("cancel_idle", ids=free, actor=actor, reason=reason)))
    moved = yield from archive(idle)
    running = sorted(set(free) - set(idle))
    if only_queued or not running:
        return CancelledMany(moved, {})
    asked = yield from execute("ask_cancel", ids=running, actor=actor, reason=reason)
    return CancelledMany(moved, {str(row[0]): str(row[1]) for row in asked})


@operation()
def revive_many(
    ids: Sequence[str], *, actor: str | None, reason: str | None = None, ended_by_us: int | None = None
) -> Steps[list[Requeued]]:
    """Queue finished jobs again, but for those whose key belongs to another job by now, and those before which another
    job must end. With `ended_by_us` (microseconds) only those that have ended by then: who has run again since is left.

    Repeating it after an unknown outcome may revive a job that has ended again since: look first.
    """
    locked = yield from execute("lock_free_finished", ids=list(ids), ended_by=ended_by_us)
    soon_enough = [row for row in locked if row[3] is None]
    taken = yield from _taken_keys(soon_enough)
    free = [str(row[0]) for row in soon_enough if _key_of(row) not in taken]
    if not free:
        return []
    return requeued_rows((yield from execute("revive", ids=free, actor=actor, reason=reason)))


@operation()
def delete_many(ids: Sequence[str]) -> Steps[list[str]]:
    """Remove finished jobs with their timeline and logs; returns those that were removed."""
    free = first_column((yield from execute("lock_removable", ids=list(ids))))
    if not free:
        return []
    return (yield from forget_notes(first_column((yield from execute("delete", ids=free)))))


def _taken_keys(locked: Sequence[Row]) -> Steps[set[tuple[str, str, str]]]:
    """Stop the lifetimes of the keys that the locked jobs own, and return those that others own."""
    wanted = [found for row in locked if (found := _key_of(row)) is not None]
    if not wanted:
        return set()
    kept = set(first_column((yield from execute("keep_key", keys=key_document(wanted)))))
    lost = [each for each in wanted if each[0] not in kept]
    if not lost:
        return set()
    owned = yield from execute("read_keys", keys=key_document(lost))
    living = {(str(scope), str(key)) for scope, key, _, _, expired, _ in owned if not expired}
    return {each for each in lost if each[1:] in living}


def _key_of(row: Row) -> tuple[str, str, str] | None:
    scope, key = text_or_none(row[1]), text_or_none(row[2])
    return None if scope is None or key is None else (str(row[0]), scope, key)
