"""Whether wings have anything in their tables: what all who sleep until then ask goes into one statement."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from fencerow.core.db.engine import Engine
from fencerow.core.db.queries import Query
from fencerow.core.db.run import Statement, Steps, first_column, operation

SHARED_S = 0.5  # how old an answer may be that somebody else's look has brought


@operation(alone=True, repeatable=True, writes="")
def which_are_used(asked: Query) -> Steps[list[str]]:
    """The names of those queries that have a row."""
    return first_column((yield Statement(asked.name, {}, asked)))


class SharedLooks:
    """The looks of one event loop at one database.

    Each answer is for one question: who asks again causes a look, which answers all others as well.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._answers: dict[str, bool] = {}
        self._looked_at = 0.0
        self._turn = asyncio.Lock()

    async def is_used(self, engine: Engine, name: str, *, afresh: bool) -> bool:
        """Whether the named query has a row. `afresh`: something was heard, and an earlier look says nothing of it."""
        async with self._turn:
            self._names.add(name)
            is_old = time.monotonic() - self._looked_at > SHARED_S
            if afresh or is_old or name not in self._answers:
                await self._look(engine)
            return self._answers.pop(name)

    def forget(self, name: str) -> None:
        """Nobody asks for it any more."""
        self._names.discard(name)

    async def _look(self, engine: Engine) -> None:
        names = sorted(self._names)
        began = time.monotonic()
        found = await engine.arun(which_are_used(_asking(engine, names)))
        self._answers = {name: name in found for name in names}
        self._looked_at = began


def _asking(engine: Engine, names: Sequence[str]) -> Query:
    """One query with a row for each of these that has one. None of them takes a parameter."""
    parts = []
    for name in names:
        (text,) = engine.queries[name].statements
        parts.append(f"SELECT '{name}' WHERE EXISTS ({text})")
    return Query("which_are_used", ("\nUNION ALL\n".join(parts),), ())


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakKeyDictionary[Engine, SharedLooks]] = (
    WeakKeyDictionary()
)


def looks_at(engine: Engine) -> SharedLooks:
    """Those of the event loop that runs here."""
    of_loop = _looks.setdefault(asyncio.get_running_loop(), WeakKeyDictionary())
    return of_loop.setdefault(engine, SharedLooks())
