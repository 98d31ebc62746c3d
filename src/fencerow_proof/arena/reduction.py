"""Which orders come to the same: two prefixes after which nobody can tell them apart are explored once.

Under READ COMMITTED a step is decided by what was committed when it began (and when it went on after a wait), by what
its own transaction did, and by the locks it met, which show as a wait or in its reply. So a prefix is told by what each
actor did and was answered, by how often the tables that a step names had been written by others at that moment, and by
the queue of those who wait for locks. The order of steps that do not see each other's writes is left out of it.

Beside it stands what the last step touched, so that steps that touch nothing in common need not be played both ways.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

from fencerow.db.queries import Query
from fencerow_proof.explorer.footprint import (
    CLOCK,
    EVERYTHING,
    NOTHING,
    Footprint,
    footprint_of,
    keeps_locks,
    takes_advisory,
)
from fencerow_proof.sql import ANYTHING

INSTANT = re.compile(
    r"\b\d{15,17}\b|\d{4}-\d\d-\d\d[ T][\d:.+]+"
)  # replies tell the time, and it never is the same


class Reduction:
    """What was done so far in one order."""

    def __init__(self) -> None:
        self._pasts: dict[str, tuple[Hashable, ...]] = {}
        self._written: Counter[str] = Counter()  # commits that wrote a table
        self._open: dict[str, set[str]] = {}  # what an actor's transaction wrote
        self._locked: dict[str, frozenset[str]] = {}  # where an actor's transaction holds locks of rows
        self._queue: list[str] = []
        self._at_gates: set[str] = set()
        self._locking: set[str] = set()  # at their gates
        self._delayed: set[str] = (
            set()
        )  # whose statement was held or waited: it may have locked what it refused
        self.touched: Footprint | None = None  # by the step under way

    def begin(self) -> None:
        """A step begins."""
        self.touched = NOTHING

    def steps(self, actor: str, what: str, query: Query | None) -> None:
        """An actor sends a statement, lets a held one go on, or ends its transaction."""
        self._note(actor, what, _tables(query) | self._open.get(actor, set()))

    def held(self, actor: str, query: Query, *, locks: bool) -> None:
        """Its statement stands between its snapshot and its change; `locks`: its transaction holds some already."""
        if actor in self._at_gates:
            return
        self._at_gates.add(actor)
        self._delayed.add(actor)
        foot = _footprint(query)
        if locks or takes_advisory(query.statements):
            self._locking.add(actor)
            self._touch(foot)
        else:
            self._touch(foot.looking)

    def goes_on(self, actor: str, query: Query) -> None:
        """A held statement goes on."""
        self._at_gates.discard(actor)
        self.steps(actor, "goes on", query)

    def waits(self, actor: str, query: Query | None) -> None:
        """An actor waits for another's lock."""
        if actor not in self._queue:
            self._queue.append(actor)
            self._delayed.add(actor)
            self._note(actor, "waits", set())
            self._touch(EVERYTHING if query is None else _footprint(query))

    def answered(self, actor: str, query: Query, rows: str, *, wrote: bool, alone: bool) -> None:
        """A statement was answered; `alone`: in a transaction of its own, with whose end it lets go of all locks."""
        locked = wrote or actor in self._queue or actor in self._locking
        locked = locked or (not alone and (actor in self._delayed or keeps_locks(query.statements)))
        if actor in self._queue:
            self._queue.remove(actor)
        foot = _footprint(query)
        self._note(actor, INSTANT.sub("T", rows), _tables(query))
        if wrote:
            self._open.setdefault(actor, set()).update(foot.writes)
        if locked:
            self._locked[actor] = self._locked.get(actor, frozenset()) | foot.writes
            self._touch(foot)
        else:
            self._touch(foot.looking)
        self._delayed.discard(actor)
        self._locking.discard(actor)

    def refused(self, actor: str, what: str, query: Query | None) -> None:
        """A statement failed, and its transaction with it."""
        self.steps(actor, what, None)
        self._touch(EVERYTHING if query is None else _footprint(query))
        self.ended(actor, committed=False)

    def ended(self, actor: str, *, committed: bool) -> set[str]:
        """An actor's transaction is over; returns the tables that it changed for good."""
        if actor in self._queue:
            self._queue.remove(actor)
        self._delayed.discard(actor)
        self._locking.discard(actor)
        self._at_gates.discard(actor)
        wrote = self._open.pop(actor, set())
        self._touch(Footprint(writes=self._locked.pop(actor, frozenset()) | wrote))
        if not committed:
            return set()
        self._written.update(wrote)
        return wrote

    def state(self) -> Hashable:
        """Equal for prefixes that nobody can tell apart."""
        return tuple(sorted((actor, hash(past)) for actor, past in self._pasts.items())), tuple(self._queue)

    def _touch(self, foot: Footprint) -> None:
        self.touched = foot if self.touched is None else self.touched | foot

    def _note(self, actor: str, what: str, tables: set[str]) -> None:
        named = self._written if ANYTHING in tables else tables | {CLOCK}
        seen = tuple((table, self._written[table]) for table in sorted(named))
        self._pasts[actor] = (*self._pasts.get(actor, ()), (what, seen))


def may_write(query: Query, rows: list[tuple[object, ...]]) -> bool:
    """Whether a statement changed something. Ours return what they changed; what returns nothing is taken to change."""
    text = " ".join(query.statements)
    if "RETURNING" in text:
        return any(value is not None for row in rows for value in row)
    return not text.lstrip().startswith("SELECT")


def _tables(query: Query | None) -> set[str]:
    return set() if query is None else set().union(*_footprint(query))


def _footprint(query: Query) -> Footprint:
    if query.name == "later":
        return Footprint(writes=frozenset({CLOCK}))
    return footprint_of(query.statements)
