"""The gates that a hand-over has locked, and who of those that wait there may go. No I/O.

A job goes when there is room at all of its gates at once. One that does not fit at another gate than the one where it
waits is sent on to that gate, so that nobody looks at it again before that gate has room.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.limiting import LimitRule

KEY: Final = "key:"
LIMIT: Final = "limit:"
NOWHERE: Final = (
    "unreadable"  # where those wait whose rows say nothing that a gate could be found by: for people
)
NAME_LENGTH_MAX: Final = 420  # of a gate: our own are shorter, and an index of PostgreSQL holds no long ones
ROOM_MAX: Final = 500  # that one look gives at a gate
SLOTS_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that waits at a gate and is due. `gates`: all at which it needs a turn."""

    id: str
    gate: str
    slots: int
    gates: tuple[str, ...]


class Gate(ABC):
    """A locked gate. `taken`: how many had a turn there when it was locked; `given`: the jobs that got one since.

    `closed`: one that waits there does not fit, and nobody goes past it. `overfull`: nothing was left for it.
    """

    def __init__(self, name: str, taken: int) -> None:
        self.name = name
        self.taken = taken
        self.given: list[str] = []
        self.closed = False
        self.overfull = False

    @property
    @abstractmethod
    def wanted(self) -> int:
        """How many of those who wait there are to be looked at; 0: none of them may get a turn."""

    @property
    @abstractmethod
    def is_free(self) -> bool:
        """Whether one more may get a turn, if the right one comes."""

    @property
    def again_us(self) -> int | None:
        """When time makes it free, in microseconds since 1970; None: only an end does."""
        return None

    @abstractmethod
    def fits(self, job: Candidate, /) -> bool:
        """Whether it may have a turn beside those that have one."""

    def give(self, job: Candidate, /) -> None:
        """It has a turn now."""
        self.given.append(job.id)


class KeyGate(Gate):
    """That of an exclusive key. `least`: what the least of those allows who have a turn; `head`: the first who waits,
    None where nobody does."""

    def __init__(self, name: str, taken: int, *, least: int | None, head: int | None) -> None:
        super().__init__(name, taken)
        self.least = least
        self.head = head

    @property
    def wanted(self) -> int:
        return 0 if self.head is None else self._allowed(self.head) - self.taken

    @property
    def is_free(self) -> bool:
        return self.taken + len(self.given) < self._allowed(SLOTS_MAX if self.least is not None else 1)

    def fits(self, job: Candidate, /) -> bool:
        return not self.closed and self.taken + len(self.given) < self._allowed(job.slots)

    def give(self, job: Candidate, /) -> None:
        super().give(job)
        self.least = self._allowed(job.slots)

    def _allowed(self, slots: int) -> int:
        return slots if self.least is None else min(self.least, slots)


class LimitGate(Gate):
    """That of a limit. Without a rule nobody defined it, and it bounds nobody."""

    def __init__(self, name: str, taken: int, rule: LimitRule | None) -> None:
        super().__init__(name, taken)
        self.rule = rule
        self._room = ROOM_MAX if rule is None else rule.room(taken)  # as of the lock

    @property
    def wanted(self) -> int:
        one_more = self.rule is not None and self.rule.is_paced
        return self._room + one_more if self._room else 0

    @property
    def is_free(self) -> bool:
        return self._room > len(self.given)

    @property
    def waits(self) -> bool | None:
        """Whether somebody is left there who is due; None: nobody looked."""
        return self.overfull if self._room else None

    @property
    def again_us(self) -> int | None:
        return None if self.rule is None else self.rule.again_us(self.taken, self.given)

    def fits(self, _job: Candidate, /) -> bool:
        return not self.closed and self.is_free


@dataclass(slots=True)
class Choice:
    """Who gets a turn, who is to wait elsewhere, and which gates are to be looked at again."""

    given: list[str] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)  # job to gate
    again: set[str] = field(default_factory=set)

    @property
    def unreadable(self) -> list[str]:
        """The jobs that no gate is for."""
        return [job_id for job_id, gate in self.sent.items() if gate == NOWHERE]


def gates_of(exclusive: str | None, limits: str | None) -> tuple[str, ...]:
    """All gates of a job with this key and these limits, which are the JSON of their names; none, if that is damaged.

    Many jobs are looked at together, and whoever may insert one may have written anything: it must stop no other.
    """
    try:
        names = msgspec.json.decode(limits, type=list[str]) if limits is not None else []
    except UNREADABLE:
        return ()
    key = () if exclusive is None else (f"{KEY}{exclusive}",)
    gates = (*key, *(f"{LIMIT}{name}" for name in names))
    return gates if all(len(name) <= NAME_LENGTH_MAX for name in gates) else ()


def choose(candidates: Iterable[Candidate], gates: Mapping[str, Gate]) -> Choice:
    """Give turns to those who come first. `gates`: those that are locked."""
    choice = Choice()
    for job in candidates:
        own = gates[job.gate]
        if job.gate not in job.gates:  # nobody's code wrote that: out of the way of those behind it
            choice.sent[job.id] = NOWHERE
            choice.again.add(job.gate)
            continue
        if not own.fits(job):
            own.overfull = own.overfull or not own.closed
            own.closed = True
            continue
        if any(name not in gates for name in job.gates):
            # Somebody else came first when it was looked which gates are needed. The next look knows them.
            own.closed = True
            choice.again.update((job.gate, *job.gates))
            continue
        full = next((name for name in job.gates if not gates[name].fits(job)), None)
        if full is None:
            choice.given.append(job.id)
            for name in job.gates:
                gates[name].give(job)
        else:
            choice.sent[job.id] = full
            choice.again.add(job.gate)  # its place is free for the next
    return choice


def by_room(gates: Iterable[Gate]) -> dict[int, list[str]]:
    """The gates that have room, by how much."""
    found: dict[int, list[str]] = {}
    for gate in gates:
        if gate.wanted > 0:
            found.setdefault(min(gate.wanted, ROOM_MAX), []).append(gate.name)
    return found
