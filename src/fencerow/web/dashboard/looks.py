"""Looks at the database, shared: whoever opens the same address within a second, or keeps it open, sees one look.

One poller of the process looks again at all addresses that are open somewhere, within a budget of statements for each
round. So fifty open pages of one screen cost as much as one, and fifty of fifty screens are seen less often. What
several screens of a round ask alike is asked once, and the poller waits the longer the longer a round takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fencerow.core.errors import FencerowError
from fencerow.web.dashboard.answers import RoundAnswers
from fencerow.web.dashboard.beat import LIVE_S, Beat
from fencerow.web.dashboard.cost import Cost
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Look, Screen
from fencerow.web.errors import TooLate

log = logging.getLogger("fencerow.web")

LOOK_S = 5.0
FRESH_S = 1.0
ROUND_STATEMENTS = 30
KEPT_MAX = 200

Pairs = tuple[tuple[str, str], ...]
PartKey = tuple[str, str, Role]  # base, address below it, role of who sees it


@dataclass(frozen=True, slots=True)
class ScreenPlace:
    """A screen at an address."""

    screen: Screen
    params: Pairs
    query: Pairs


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look found, when (`time.time`), and what it has cost. `error`: nothing was found.

    `slowed_s`: how often open pages are looked at now, if that is seldomer than always. `parts`: what was made of it
    for whoever has it open.
    """

    found: Mapping[str, Any]
    at_s: float
    cost: Cost
    error: FencerowError | None = None
    slowed_s: float | None = None
    parts: dict[PartKey, list[bytes]] = field(default_factory=dict)


class FollowedPlace:
    """A place that is open somewhere; `next` is done when it was looked at again, with None when all shall end."""

    def __init__(self) -> None:
        self.readers = 0
        self.next: asyncio.Future[Seen | None] = asyncio.get_running_loop().create_future()

    def tell(self, seen: Seen | None) -> None:
        """Let all who wait go on."""
        done, self.next = self.next, asyncio.get_running_loop().create_future()
        done.set_result(seen)


class Looks:
    """For one event loop. `make`: a look at a place, which counts what it costs."""

    def __init__(
        self, make: Callable[[ScreenPlace, Cost], Look], *, live_s: float = LIVE_S, look_s: float = LOOK_S
    ) -> None:
        self._make = make
        self._beat = Beat(live_s)
        self._look_s = look_s
        self._kept: OrderedDict[ScreenPlace, asyncio.Task[Seen]] = OrderedDict()
        self._followed: OrderedDict[ScreenPlace, FollowedPlace] = OrderedDict()
        self._poller: asyncio.Task[None] | None = None
        self.leaving = False

    async def seen(self, place: ScreenPlace) -> Seen:
        """What is there now, or was a second ago.

        Raises:
            FencerowError: the view's own, `TooLate`, or that the database cannot be asked.
        """
        task = self._kept.get(place)
        if task is None or (task.done() and _is_old(task)):
            task = self._kept[place] = asyncio.ensure_future(self._look(place))
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        seen = await asyncio.shield(task)
        if seen.error is not None:
            self._kept.pop(place, None)
            raise seen.error
        return seen

    def forget(self) -> None:
        """Somebody changed something: whoever looks from now on looks anew."""
        self._kept.clear()

    @contextlib.contextmanager
    def following(self, place: ScreenPlace) -> Iterator[FollowedPlace]:
        """Have the poller look at this place as long as the block lasts."""
        followed = self._followed.setdefault(place, FollowedPlace())
        followed.readers += 1
        if self._poller is None or self._poller.done():
            self._poller = asyncio.ensure_future(self._poll())
        try:
            yield followed
        finally:
            followed.readers -= 1
            if not followed.readers:
                self._followed.pop(place, None)

    def leave(self) -> None:
        """End all that follow. It may be repeated."""
        self.leaving = True
        for followed in self._followed.values():
            followed.tell(None)

    async def aclose(self) -> None:
        """End the poller."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    async def _poll(self) -> None:
        while self._followed:
            late_s = await self._beat.wait()
            began_s = time.monotonic()
            await self._round()
            self._beat.took(late_s + time.monotonic() - began_s)

    async def _round(self) -> None:
        spent, answers = 0, RoundAnswers()
        for place in list(self._followed):
            if spent >= ROUND_STATEMENTS:
                break  # the rest comes first in the next round
            if (followed := self._followed.get(place)) is None:
                continue
            self._followed.move_to_end(place)
            seen = await self._look(place, answers)
            spent += seen.cost.statements
            followed.tell(seen)

    async def _look(self, place: ScreenPlace, answers: RoundAnswers | None = None) -> Seen:
        cost = Cost(place.screen.statements_max, place.screen.rows_max, answers=answers)
        found: Mapping[str, Any] = MappingProxyType({})
        error: FencerowError | None = None
        look_s = place.screen.look_s or self._look_s
        limit = asyncio.timeout(look_s)
        try:
            async with limit:
                found = await place.screen.view(self._make(place, cost))
        except TimeoutError:
            error = TooLate(f"the database did not answer within {look_s:g} s", "it is slow, or gone", "wait")
        except FencerowError as refused:
            error = refused
        except Exception as fault:
            log.error("screen %s met %s", place.screen.name, type(fault).__name__, exc_info=fault)
            error = FencerowError("the dashboard met a fault of its own")
        return Seen(found, time.time(), cost, error, self._beat.slowed_s)


def _is_old(task: asyncio.Task[Seen]) -> bool:
    # Pages show when it was; one that seems to come yet was before the clock was set back.
    return task.cancelled() or not 0 <= time.time() - task.result().at_s <= FRESH_S
