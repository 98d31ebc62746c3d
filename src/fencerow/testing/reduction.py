"""Which orders come to the same: two prefixes after which nobody can tell them apart are explored once.

Under READ COMMITTED a step is decided by what was committed when it began (and when it went on after a wait), by what
its own transaction did, and by the locks it met, which show as a wait or in its reply. So a prefix is told by what each
actor did and was answered, by how often the tables that a step names had been written by others at that moment, and by
the queue of those who wait for locks. The order of steps that do not see each other's writes is left out of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

from fencerow.db.queries import Query

TABLE = re.compile(r'"\w+"\."?(\w+)')  # ours, and a user's, whose name is quoted too
INSTANT = re.compile(
    r"\b\d{15,17}\b|\d{4}-\d\d-\d\d[ T][\d:.+]+"
)  # replies tell the time, and it never is the same
CLOCK = "clock"  # what every step reads and `later` moves


class Reduction:
    """What was done so far in one order."""

    def __init__(self) -> None:
        self._pasts: dict[str, tuple[Hashable, ...]] = {}
        self._written: Counter[str] = Counter()  # commits that wrote a table
        self._open: dict[str, set[str]] = {}  # what an actor's transaction wrote
        self._queue: list[str] = []

    def steps(self, actor: str, what: str, query: Query | None) -> None:
        """An actor sends a statement, lets a held one go on, or ends its transaction."""
        self._note(actor, what, _tables(query) | self._open.get(actor, set()))

    def waits(self, actor: str) -> None:
        """An actor waits for another's lock."""
        if actor not in self._queue:
            self._queue.append(actor)
            self._note(actor, "waits", set())

    def answered(self, actor: str, query: Query, rows: str, *, wrote: bool, commits: bool) -> None:
        """A statement was answered."""
        if actor in self._queue:
            self._queue.remove(actor)
        tables = _tables(query)
        self._note(actor, INSTANT.sub("T", rows), tables)
        if wrote:
            self._open.setdefault(actor, set()).update(tables)
        if commits:
            self.ended(actor, committed=True)

    def ended(self, actor: str, *, committed: bool) -> None:
        """An actor's transaction is over."""
        if actor in self._queue:
            self._queue.remove(actor)
        wrote = self._open.pop(actor, set())
        if committed:
            self._written.update(wrote)

    def state(self) -> Hashable:
        """Equal for prefixes that nobody can tell apart."""
        return tuple(sorted((actor, hash(past)) for actor, past in self._pasts.items())), tuple(self._queue)

    def _note(self, actor: str, what: str, tables: set[str]) -> None:
        seen = tuple((table, self._written[table]) for table in sorted(tables | {CLOCK}))
        self._pasts[actor] = (*self._pasts.get(actor, ()), (what, seen))


def may_write(query: Query, rows: list[tuple[object, ...]]) -> bool:
    """Whether a statement changed something. Ours return what they changed; what returns nothing is taken to change."""
    text = " ".join(query.statements)
    if "RETURNING" in text:
        return any(value is not None for row in rows for value in row)
    return not text.lstrip().startswith("SELECT")


def _tables(query: Query | None) -> set[str]:
    if query is None:
        return set()
    if query.name == "later":
        return {CLOCK}
    return set(TABLE.findall(" ".join(query.statements)))
