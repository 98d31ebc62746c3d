"""Claimed jobs of batch handlers that wait for more of their kind, before they wait for a slot.

They keep no slot from other jobs. They are claimed, so that the wait is bounded, and counts as part of no attempt:
whatever ends it early hands them to a slot, or back to their queue as jobs that have not started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from fencerow.core.worker.attempt import Attempt

GATHERED_MAX = 1000  # over all names: a worker that holds so many lets all of them go on

Entry = tuple[float, int, Attempt]  # as in the heap of a pool
Kind = tuple[str, float | None]  # those of one name and one time limit may go into one call


def kind_of(attempt: Attempt) -> Kind:
    """What is the same of attempts that may go into one call."""
    return attempt.claimed.name, attempt.timeout_s


class Gatherings:
    """Of each kind, the attempts that will go into one call, until they are as many as it takes or have waited for long
    enough, counted from the first. Then `ready` gets them. Used on the event loop only."""

    def __init__(self, ready: Callable[[list[Entry]], None]) -> None:
        self._ready = ready
        self._gathered: dict[Kind, list[Entry]] = {}
        self._timers: dict[Kind, asyncio.TimerHandle] = {}
        self.count = 0  # attempts that wait here

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entries in self._gathered.values() for entry in entries)

    def missing(self) -> int:
        """How many jobs would fill all these calls, if they came."""
        return sum((each[0][2].handler.batch_max or 1) - len(each) for each in self._gathered.values())

    def add(self, entry: Entry) -> None:
        """It waits from now on; if it is the last that its call takes, none of them does."""
        handler, kind = entry[2].handler, kind_of(entry[2])
        entries = self._gathered.setdefault(kind, [])
        if not entries:
            loop = asyncio.get_running_loop()
            self._timers[kind] = loop.call_later(handler.batch_wait_s, self._let_go, kind)
        entries.append(entry)
        self.count += 1
        if len(entries) >= (handler.batch_max or 1):
            self._let_go(kind)
        elif self.count >= GATHERED_MAX:
            for each in tuple(self._gathered):
                self._let_go(each)

    def alike(self, first: Attempt) -> list[Entry]:
        """Those that may go into the call of this one."""
        return self._gathered.get(kind_of(first), [])

    def let_go_asked(self) -> None:
        """Those that were asked to end wait no more: a slot sees what becomes of them."""
        asked = [entry for entry in self if entry[2].asked_to_end]
        self.remove(asked)
        if asked:
            self._ready(asked)

    def remove(self, entries: Iterable[Entry]) -> None:
        """These are somebody else's now."""
        numbers = {number for _, number, _ in entries}
        for kind in tuple(self._gathered) if numbers else ():
            kept = [entry for entry in self._gathered[kind] if entry[1] not in numbers]
            self.count -= len(self._gathered[kind]) - len(kept)
            self._gathered[kind] = kept
            if not kept:
                self._end(kind)

    def _let_go(self, kind: Kind) -> None:
        entries = self._gathered[kind]
        self.count -= len(entries)
        self._end(kind)
        self._ready(entries)

    def _end(self, kind: Kind) -> None:
        del self._gathered[kind]
        self._timers.pop(kind).cancel()
