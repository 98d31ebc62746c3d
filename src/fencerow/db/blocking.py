"""Refuses verbs that wait for the database in a thread whose event loop would stand still meanwhile.

Such a call works in a test and stops everything else in the loop when the database is slow; one that waits for a job of
the same loop's worker waits for itself. The async twin has the same name with an `a` before it.
"""

from __future__ import annotations

import asyncio
import sys
from types import FrameType

from fencerow.db.errors import BlockingCall

PACKAGE = __name__.partition(".")[0]
VERBS = f"{PACKAGE}.core.verb"
DOOR = f"{PACKAGE}.core.answering"  # stands around what callers are given


def refuse_in_loop() -> None:
    """Called by every sync verb before it waits on a connection of ours; one that the caller lends is his own affair.

    Raises:
        BlockingCall: an event loop runs in this thread. Nothing was sent.
    """
    if asyncio._get_running_loop() is not None:
        raise _refusal(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def _refusal(frame: FrameType) -> BlockingCall:
    """The verb is the outermost function of ours: what the caller wrote."""
    outer = frame.f_back
    while outer is not None and _is_ours(outer):
        if outer.f_globals.get("__name__") != DOOR:
            frame = outer
        outer = outer.f_back
    verb = _name_of(frame)
    if verb == "__enter__":
        called, instead = "a `with` block", "write `async with`"
    else:
        called, instead = f"{verb}()", _instead(frame, verb)
    return BlockingCall(
        f"{called} was used inside a running event loop",
        "it would block the loop, and all that runs in it, until the database answers",
        instead,
    )


def _name_of(frame: FrameType) -> str:
    """A verb that was made of a procedure runs in the one function of `verb.py`, which knows the procedure."""
    made_of = frame.f_locals.get("procedure") if frame.f_globals.get("__name__") == VERBS else None
    return frame.f_code.co_name if made_of is None else str(made_of.__name__)


def _instead(frame: FrameType, verb: str) -> str:
    owner = next(iter(frame.f_locals.values()), None)
    if hasattr(owner, f"a{verb}") or f"a{verb}" in frame.f_globals:
        return (
            f"write `await ...a{verb}(...)`" if hasattr(owner, f"a{verb}") else f"write `await a{verb}(...)`"
        )
    return f"write `await asyncio.to_thread(...{verb}, ...)`"


def _is_ours(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")
