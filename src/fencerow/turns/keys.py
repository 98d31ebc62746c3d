"""The operations that look at exclusive keys. None locks or changes anything."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from fencerow.core.model.job import At, AtOrNone
from fencerow.core.model.state import State
from fencerow.db.run import Rows, Steps, as_int, as_int_or_none, execute, operation

LOOK_MAX = 10_000  # steps of each scan of a list
COUNTED_MAX = 1_000  # jobs of a key that are counted
HOLDERS_MAX = 100  # jobs that have a turn, of one key, that are shown
PREFIX = "key:"
NOBODY = "00000000-0000-0000-0000-000000000000"

T = TypeVar("T")


class KeySummary(msgspec.Struct, frozen=True, kw_only=True):
    """A key of which jobs are live. Instants are microseconds since 1970 by the database's clock.

    `running` and `queued` jobs have its turns; a queued one is to be claimed yet. `at_once`: how many may have one at
    once. Counts end at 1,000. `held_since_us`: since when one of them has its turn; `waits_since_us`: since when the
    first that waits is due, or when it will be.
    """

    key: str
    at_once: int
    running: int
    queued: int
    waiting: int
    held_since_us: int | None
    waits_since_us: int | None
    now_us: int

    held_since = AtOrNone("held_since_us")
    waits_since = AtOrNone("waits_since_us")
    now = At("now_us")


class KeyList(msgspec.Struct, frozen=True):
    """Keys, those first where somebody has waited longest. `is_whole`: all keys were looked at."""

    keys: list[KeySummary]
    is_whole: bool


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has a turn. `since_us`: since when. `started_us`: when its last attempt began. `worker_id` and what
    follows: who runs it, None while nobody does."""

    id: str
    queue: str
    name: str
    state: State
    attempt: int
    strict: bool
    at_once: int
    since_us: int
    run_at_us: int
    started_us: int | None
    deadline_us: int | None
    worker_id: str | None
    worker: str | None
    host: str | None
    pid: int | None

    since = At("since_us")
    run_at = At("run_at_us")
    started = AtOrNone("started_us")
    deadline = AtOrNone("deadline_us")

    @property
    def keeps_its_turn(self) -> bool:
        """Whether it is between two of its attempts, and nobody else may have the turn meanwhile."""
        has_started = self.started_us is not None and self.started_us >= self.since_us
        return self.state is State.QUEUED and self.strict and has_started


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits for a turn. `paused`: its queue is, so that others go before it."""

    id: str
    queue: str
    name: str
    priority: int
    attempt: int
    strict: bool
    at_once: int
    run_at_us: int
    submitted_us: int
    paused: bool

    run_at = At("run_at_us")
    submitted = At("submitted_us")


class ExclusiveKey(msgspec.Struct, frozen=True, kw_only=True):
    """Who has the turns of a key, at most 100 of them, and who waits, the next first. `waiting_count` ends at 1,000."""

    key: str
    holders: list[Holder]
    waiting: list[Waiter]
    waiting_count: int
    now_us: int

    now = At("now_us")

    @property
    def at_once(self) -> int:
        """How many may have a turn at once, as far as those allow who have one and who comes first."""
        allowed = [each.at_once for each in self.holders] + [each.at_once for each in self.waiting[:1]]
        return min(allowed, default=1)


@operation(alone=True, repeatable=True, writes="")
def known_keys(*, limit: int, look: int = LOOK_MAX) -> Steps[KeyList]:
    """Keys of which jobs are live: those of the first `look` gates and of the first `look` keys that are held."""
    rows = yield from execute("known_keys", limit=limit, look=look)
    return KeyList([_summary(row) for row in rows], is_whole=not any(bool(row[9]) for row in rows))


@operation(repeatable=True, writes="", reads="both")
def look(key: str, *, limit: int) -> Steps[ExclusiveKey]:
    """Who has the turns of a key, and the first `limit` that wait for one."""
    holders = read(Holder, (yield from execute("key_holders", key=key, limit=HOLDERS_MAX)))
    waiting, count, now_us = yield from waiting_at(PREFIX + key, limit=limit)
    return ExclusiveKey(key=key, holders=holders, waiting=waiting, waiting_count=count, now_us=now_us)


def waiting_at(gate: str, *, limit: int) -> Steps[tuple[list[Waiter], int, int]]:
    """The first that wait at a gate, how many do, counted up to 1,000, and the time. Part of other operations."""
    waiting = read(Waiter, (yield from execute("gate_waiters", gate=gate, limit=limit)))
    count, _, now_us = yield from counted_at(gate, priority=0, run_at_us=0, job_id=NOBODY)
    return waiting, count, now_us


def counted_at(gate: str, priority: int, run_at_us: int, job_id: str) -> Steps[tuple[int, int, int]]:
    """How many wait at a gate, how many of them come before this place, and the time. Part of other operations."""
    rows = yield from execute("count_at_gate", gate=gate, priority=priority, run_at_us=run_at_us, id=job_id)
    return as_int(rows[0][0]), as_int(rows[0][1]), as_int(rows[0][2])


def read(wanted: type[T], rows: Rows) -> list[T]:
    """Rows of one JSON document each."""
    return [msgspec.json.decode(str(row[0]), type=wanted) for row in rows]


def _summary(row: tuple[object, ...]) -> KeySummary:
    allowed = [each for each in (as_int_or_none(row[3]), as_int_or_none(row[5])) if each is not None]
    return KeySummary(
        key=str(row[0]),
        at_once=min(allowed, default=1),
        running=as_int(row[1]),
        queued=as_int(row[2]),
        waiting=as_int(row[6]),
        held_since_us=as_int_or_none(row[4]),
        waits_since_us=as_int_or_none(row[7]),
        now_us=as_int(row[8]),
    )
