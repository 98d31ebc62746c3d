"""One press of a form is done once by a process: who presses twice is told what the first press did."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from weakref import WeakKeyDictionary

from fencerow.app import App
from fencerow.web.dashboard.screen import PressAnswer
from fencerow.web.errors import TooLate

KEPT_MAX = 100
WAITS_S = 20.0

_of_apps: WeakKeyDictionary[App, OrderedDict[Hashable, asyncio.Task[PressAnswer]]] = WeakKeyDictionary()


async def once(app: App, form: Hashable, make: Callable[[], Awaitable[PressAnswer]]) -> PressAnswer:
    """What became of this form. One that failed may be pressed again. It goes on when nobody waits for it any more.

    Raises:
        TooLate: it goes on, and what it does is not known yet. Other errors: those of `make`.
    """
    flights = _of_apps.setdefault(app, OrderedDict())
    task = flights.get(form)
    if task is None or _failed(task):
        task = flights[form] = asyncio.ensure_future(_made(make))
        _forget(flights)
    await asyncio.wait({task}, timeout=WAITS_S)
    if not task.done():
        raise TooLate(
            f"a portion is under way for more than {WAITS_S:g} s",
            "the database is slow; what is done stays done",
            "look at the jobs, then press again for the rest",
        )
    return task.result()


async def _made(make: Callable[[], Awaitable[PressAnswer]]) -> PressAnswer:
    return await make()


def _failed(task: asyncio.Task[PressAnswer]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _forget(flights: OrderedDict[Hashable, asyncio.Task[PressAnswer]]) -> None:
    for form in [form for form, task in flights.items() if task.done()][: max(0, len(flights) - KEPT_MAX)]:
        del flights[form]
