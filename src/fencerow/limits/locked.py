"""A limit that a transaction has locked: what became of those who had its turns, what it lets start, what it keeps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.core.model.state import State
from fencerow.core.model.value import UNREADABLE
from fencerow.db.locks import lock_number
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, text_or_none
from fencerow.db.text import amount
from fencerow.limits.breaking import FailedAttempt
from fencerow.limits.definition import FLEET, QUEUE, Limit
from fencerow.limits.room import Fate, LimitState, StartRoom, after_look, after_starts, room_now
from fencerow.turns.limiting import Held

HOLDING = {State.QUEUED, State.RUNNING}


def queue_of(name: str) -> str | None:
    """The queue whose claims a limit of that name bounds: empty for all of them, None for a limit that jobs name."""
    if name == FLEET:
        return ""
    return name.removeprefix(QUEUE) if name.startswith(QUEUE) else None


def lock_of(name: str) -> int:
    """The number that stands for a limit and all its keys: shared by those who give turns under it."""
    return lock_number("limit", name if queue_of(name) is not None else name.partition("/")[0])


def remembered(state: str | None) -> LimitState:
    """What is remembered; as of a new limit, if nothing is or if it cannot be read."""
    try:
        return msgspec.json.decode(state or "{}", type=LimitState)
    except UNREADABLE:
        return LimitState()


@dataclass(frozen=True, slots=True)
class LockedLimit:
    """`limit` None: what is stored means nothing, or not here. `stored`: what was remembered when it was locked."""

    name: str
    limit: Limit | None
    stored: LimitState
    state: LimitState
    now_us: int

    @classmethod
    def of(cls, row: Sequence[object]) -> LockedLimit:
        """From a name, a definition, a state and the time."""
        return cls.understood(str(row[0]), understood(str(row[0]), str(row[1])), row[2], row[3])

    @classmethod
    def understood(cls, name: str, limit: Limit | None, state: object, now_us: object) -> LockedLimit:
        """Under this name; the definition may be that of the part before its slash."""
        found = remembered(text_or_none(state))
        return cls(name, limit, found, found, as_int(now_us))

    @property
    def counts(self) -> bool:
        """Whether it must be known how many run."""
        return self.limit is not None and self.limit.at_once is not None

    @property
    def is_paced(self) -> bool:
        """Whether it must be known if somebody is left who waits: a rate makes up for looks that come late."""
        return self.limit is not None and self.limit.rate is not None and not self.limit.rate.strict

    @property
    def is_stopped(self) -> bool:
        """Whether its breaker is open: then nobody is to start who has not."""
        return self.state.breaker.is_open(self.now_us)

    @property
    def news(self) -> str | None:
        """What is to be told of its breaker."""
        before, after = self.stored.breaker.open_until_us, self.state.breaker.open_until_us
        if self.limit is None or self.limit.breaker is None or before == after:
            return None
        if not after:
            return f"the breaker of the limit {self.name} is closed again: a job that tried has succeeded"
        again = f"then {amount(self.limit.breaker.trials, 'job')} may try"
        for_s = f"for {(after - self.now_us) / 1e6:g} s"
        return f"the breaker of the limit {self.name} is open: nothing starts {for_s}, {again}"

    def looked(self, failed: Sequence[FailedAttempt], fates: Mapping[str, Fate]) -> LockedLimit:
        """The same after a look at what became of its jobs."""
        if self.limit is None:
            return self
        seen = after_look(self.limit, self.state, self.now_us, failed=failed, fates=fates)
        return replace(self, state=seen)

    def room(self, held: Held, *, wanted: int) -> StartRoom:
        """How many may start now. What cannot be understood lets nothing through: the doctor tells of it."""
        if self.limit is None:
            return StartRoom(0, None, "what is stored of it cannot be understood here: `fencerow doctor`")
        return room_now(self.limit, self.state, self.now_us, held, wanted=wanted)

    def after(self, ids: Sequence[str], *, waits: bool | None = None) -> LockedLimit:
        """The same after these jobs got their turn. `waits`: whether somebody is left who is due, as far as known."""
        if self.limit is None:
            return self
        return replace(self, state=after_starts(self.limit, self.state, self.now_us, ids, waits))

    def to_keep(self, ids: Sequence[str], *, waits: bool | None) -> str | None:
        """What is to be remembered after these jobs got their turn, as JSON; None: what is stored already."""
        after = self.after(ids, waits=waits).state
        return None if after == self.stored else msgspec.json.encode(after).decode()


def understood(name: str, definition: str) -> Limit | None:
    """The definition as it is stored; None: it means nothing."""
    try:
        return Limit.of_document(name, definition)
    except InvalidInput:
        return None


def looked_at(locked: Sequence[LockedLimit], told: Collection[str] = ()) -> Steps[list[LockedLimit]]:
    """These limits, after a look at what became of the jobs that they watch. `told`: further names of which failures
    may have been told.

    The jobs are looked at first, and the failures are taken after that: of a job that the first look saw ended, the
    second sees the failure.
    """
    watched = {job_id for each in locked for job_id in each.state.watched}
    rows = (yield from execute("fates_of", ids=sorted(watched))) if watched else []
    names = {each.name for each in locked if each.limit is not None and each.limit.breaker is not None}
    failed: dict[str, list[FailedAttempt]] = {}
    if names := names.union(told):
        for name, at_us, started_us in (yield from execute("take_failures", names=sorted(names))):
            failed.setdefault(str(name), []).append(FailedAttempt(as_int(at_us), as_int(started_us)))
    return [each.looked(failed.get(each.name, []), _fates(rows, each.name)) for each in locked]


def _fates(rows: Sequence[Sequence[object]], name: str) -> dict[str, Fate]:
    """What became of the jobs, as this limit sees it: a queue's counts those that run."""
    holding = HOLDING if queue_of(name) is None else {State.RUNNING}
    return {
        str(job_id): Fate(State(str(state)) in holding, state == State.SUCCEEDED, as_int_or_none(started_us))
        for job_id, state, started_us in rows
    }
