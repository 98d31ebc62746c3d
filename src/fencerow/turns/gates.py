"""The gates that a hand-over has locked, and who of those that wait there may go. No I/O.

There is one kind of gate. It has room for some, and each job says how many it lets run beside itself: that is how the
number at once of an exclusive key are said. A limit has a rule that says how much room there is.

A job goes when there is room at all of its gates at once. One that does not fit at another gate than the one where it
waits is sent on to that gate, so that nobody looks at it again before that gate has room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec

from fencerow.core.model.job import Claimed
from fencerow.core.model.value import UNREADABLE
from fencerow.db.run import as_int, text_or_none
from fencerow.turns.limiting import NOBODY, Held, LimitRule

KEY: Final = "key:"
LIMIT: Final = "limit:"
NOWHERE: Final = (
    "unreadable"  # where those wait whose rows say nothing that a gate could be found by: for people
)
NAME_LENGTH_MAX: Final = 420  # of a gate: our own are shorter, and an index of PostgreSQL holds no long ones
ROOM_MAX: Final = 500  # that one look gives at a gate
MORE: Final = 2  # that wait at a gate, or more


class Candidate(msgspec.Struct, frozen=True):
    """A job that waits at a gate and may go. `gates`: all at which it needs a turn. `at_once`: how many it allows at
    that of its key. `order`: who comes first is least. `aged`: it has been due for long."""

    id: str
    gate: str
    at_once: int
    gates: tuple[str, ...]
    order: tuple[int, int, str]
    aged: bool = False


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """For which job the next turn of a gate is kept, until when (microseconds since 1970; None: since this look).

    Without a job it was kept not long ago, and now others go.
    """

    job_id: str | None
    until_us: int | None = None


class Gate:
    """A locked gate. `given`: the jobs that got a turn there since. `sent`: how many who waited at that of a limit
    were sent on to another gate.

    `is_key`: it is that of an exclusive key. `closed`: one that waits there does not fit, and nobody goes past it.
    `overfull`: nothing was left for it.
    """

    def __init__(
        self,
        name: str,
        held: Held = NOBODY,
        *,
        at_once: int | None = None,
        rule: LimitRule | None = None,
        kept: KeptTurn | None = None,
        awaited: int = MORE,
    ) -> None:
        """`held`: the turns that are taken there. `at_once`: of a key, the least that one of those allows. `rule`: of a
        limit; without one nobody defined it, and it bounds nobody. `awaited`: how many wait there, `MORE` at most."""
        self.kept = kept
        self.awaited = awaited
        self.is_key = name.startswith(KEY)
        self._keeps = 0
        self.name = name
        self.rule = rule
        self.given: list[str] = []
        self.sent = 0
        self.closed = False
        self.overfull = False
        self._held = held
        self._room = ROOM_MAX
        if rule is not None:
            self._room = min(ROOM_MAX, rule.room(held))
        elif at_once is not None:
            self._room = min(ROOM_MAX, max(0, at_once - held.taken))

    @property
    def wanted(self) -> int:
        """How many of those who wait there are to be looked at; 0: none of them may get a turn."""
        if not self.awaited:
            return 0  # whoever comes leaves an arrival
        left = self._room - self._keeps - len(self.given)
        if self.is_key and not self._held.taken and not self.given:
            return 1  # whoever is first says how many it allows
        return min(ROOM_MAX, left + self.is_paced + self.sent) if left > 0 else 0

    @property
    def is_paced(self) -> bool:
        """Whether it must be known if somebody is left there."""
        return self.rule is not None and self.rule.is_paced

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the room and the order of those who wait there decides who goes."""
        return not self.is_key and not self.is_paced and self.kept is None

    @property
    def is_free(self) -> bool:
        """Whether one more may get a turn, if the right one comes."""
        return not self.closed and self._room - self._keeps > len(self.given)

    @property
    def waits(self) -> bool | None:
        """Whether somebody is left there who is due; None: nobody looked."""
        return self.overfull if self._room else None

    @property
    def again_us(self) -> int | None:
        """When time makes it free, in microseconds since 1970; None: only an end does."""
        again_us = None if self.rule is None else self.rule.again_us(self._held, self.given)
        until_us = self.kept.until_us if self._keeps and self.kept is not None else None
        return min((each for each in (again_us, until_us) if each is not None), default=None)

    def fits(self, job: Candidate) -> bool:
        """Whether it may have a turn beside those that have one."""
        return not self.closed and self._allowed(job) - self._keeps > len(self.given)

    def keep(self) -> None:
        """One turn less for all others."""
        self._keeps = 1

    def give(self, job: Candidate) -> None:
        """It has a turn now."""
        self._room = self._allowed(job)
        self.given.append(job.id)

    def _allowed(self, job: Candidate) -> int:
        """How much room there was, if it is to run beside the others."""
        return min(self._room, job.at_once - self._held.taken) if self.is_key else self._room


@dataclass(slots=True)
class Choice:
    """Who gets a turn, who is to wait elsewhere, and which gates are to be looked at again. `more`: those that may give
    more now, for as many were found as were asked for."""

    given: list[str] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)  # job to gate
    again: set[str] = field(default_factory=set)
    more: set[str] = field(default_factory=set)
    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)  # job to the gates that keep a turn for it
    claimed: list[Claimed] = field(default_factory=list)  # of those that got a turn

    def then(self, later: Choice) -> None:
        """What was chosen after that."""
        self.given += later.given
        self.sent |= later.sent
        self.again |= later.again
        self.kept |= later.kept

    @property
    def unreadable(self) -> list[str]:
        """The jobs that no gate is for."""
        return [job_id for job_id, gate in self.sent.items() if gate == NOWHERE]


def gates_of(exclusive: str | None, limits: str | None) -> tuple[str, ...]:
    """All gates of a job with this key and these limits, which are the JSON of their names; none, if that is damaged.

    Many jobs are looked at together, and whoever may insert one may have written anything: it must stop no other.
    """
    named = () if limits is None else _limits_of(limits)
    if named is None or (exclusive is not None and len(exclusive) > NAME_LENGTH_MAX - len(KEY)):
        return ()
    return named if exclusive is None else (f"{KEY}{exclusive}", *named)


# Hundreds of jobs that are looked at together say the same. A forged text may be large.
@lru_cache(maxsize=100)
def _limits_of(limits: str) -> tuple[str, ...] | None:
    try:
        gates = tuple(f"{LIMIT}{name}" for name in msgspec.json.decode(limits, type=list[str]))
    except UNREADABLE:
        return None
    return gates if all(len(name) <= NAME_LENGTH_MAX for name in gates) else None


def choose_kept(kept: Iterable[Candidate], gates: Mapping[str, Gate]) -> Choice:
    """Give turns to jobs for which they are kept, and keep them on for those that do not fit.

    What is full until some instant keeps nothing elsewhere: nobody knows who ends before that.
    """
    choice = Choice()
    for job in kept:
        if job.gate not in job.gates:
            continue  # nobody's code wrote that
        locked = [gates[name] for name in job.gates if name in gates]
        full = [gate for gate in locked if not gate.fits(job)]
        if len(locked) < len(job.gates):
            choice.again.update(job.gates)  # the next look has all of them
        elif not full:
            choice.given.append(job.id)
            for gate in locked:
                gate.give(job)
            continue
        if all(gate.again_us is None for gate in full):
            for gate in locked:
                gate.keep()
    return choice


def choose(candidates: Iterable[Candidate], gates: Mapping[str, Gate]) -> Choice:
    """Give turns to those who come first, at whichever gate they wait. `gates`: those that are locked."""
    choice = Choice()
    wanted = {name: gate.wanted for name, gate in gates.items()}
    seen = Counter[str]()
    for job in sorted(candidates, key=lambda each: each.order):
        seen[job.gate] += 1
        _choose(job, gates, choice)
    for name, gate in gates.items():
        if max(len(gate.given), gate.sent) >= ROOM_MAX:
            choice.again.add(name)
        elif gate.is_free and (gate.given or gate.sent) and 0 < wanted[name] <= seen[name]:
            choice.more.add(name)
    return choice


def _choose(job: Candidate, gates: Mapping[str, Gate], choice: Choice) -> None:
    own = gates[job.gate]
    if job.gate not in job.gates:  # nobody's code wrote that: out of the way of those behind it
        choice.sent[job.id] = NOWHERE
        choice.again.add(job.gate)
    elif not own.fits(job):
        own.overfull = own.overfull or not own.closed
        own.closed = True
    elif any(name not in gates for name in job.gates):
        # Somebody else came first when it was looked which gates are needed. The next look knows them.
        own.closed = True
        choice.again.update((job.gate, *job.gates))
    elif (
        full := next((name for name in job.gates if name != own.name and not gates[name].fits(job)), None)
    ) is None:
        choice.given.append(job.id)
        for name in job.gates:
            gates[name].give(job)
    else:
        choice.sent[job.id] = full
        gates[full].awaited = MORE
        own.sent += not own.is_key
        if own.awaited > 1:
            choice.again.add(job.gate)  # its place is free for the next
        needed = [gates[name] for name in job.gates]
        if job.aged and gates[full].again_us is None and all(gate.kept is None for gate in needed):
            choice.kept[job.id] = job.gates  # or those that need fewer turns would go before it for ever
            for gate in needed:
                gate.kept = KeptTurn(job.id)
                gate.keep()


def candidate_of(
    gate: object,
    job_id: object,
    at_once: object,
    exclusive: object,
    limits: object,
    priority: object,
    run_at_us: object,
    aged: object,
) -> Candidate:
    """One who was found to wait at a gate, of a row of `find_turns` and alike."""
    needed = gates_of(text_or_none(exclusive), text_or_none(limits))
    order = (-as_int(priority), as_int(run_at_us), str(job_id))
    return Candidate(str(job_id), str(gate), as_int(at_once), needed, order, bool(aged) and len(needed) > 1)


def by_wanted(gates: Iterable[Gate]) -> dict[int, list[str]]:
    """The gates that have room, by how many of those who wait there are to be looked at."""
    found: dict[int, list[str]] = {}
    for gate in gates:
        if gate.wanted > 0:
            found.setdefault(gate.wanted, []).append(gate.name)
    return found
