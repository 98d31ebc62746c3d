"""One sweep of a reaper, as a script of operations: who holds the database plays it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from fencerow.core.store import store
from fencerow.db.run import Operation

Script = Generator[Operation[Any], Any, Any]
"""Yields operations, is sent the result of each (or thrown its error), and returns what the check shall see."""


def sweep(judge: str) -> Script:
    """What a reaper does."""
    now_us = yield store.clock()
    yield store.die(judge=judge, until_us=now_us + 1_000_000)
    yield store.adopt((yield store.lost_holders()))
    dead = yield store.dead_holders()
    if dead:
        yield store.reclaim(dead, limit=100, actor="reaper")
    yield store.expire(limit=100, actor="reaper")
    yield store.time_out(limit=100, delay_s=0.0, actor="reaper")
