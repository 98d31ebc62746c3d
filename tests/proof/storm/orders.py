"""What a process of a storm does to itself when it is told to, and how it is told."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine

ANSWER_S = 2.0


@dataclass(frozen=True)
class SetClock:
    """Move the process' own clock: SQLite has none but those of its processes. The answer is the moved time."""

    offset_us: int


@dataclass(frozen=True)
class BlockLoop:
    """Let the event loop stand still, as a handler does that computes or calls something plain."""

    seconds: float


@dataclass(frozen=True)
class TakeDescriptors:
    """Leave the process no file descriptor to open, for a while. The answer says how many were open."""

    seconds: float


Order = SetClock | BlockLoop | TakeDescriptors


def tell(control: Connection, order: Order, within_s: float = ANSWER_S) -> int | None:
    """Send an order; returns what the process says when it has carried it out, None if it says nothing in time."""
    try:
        control.send(order)
        return int(control.recv()) if control.poll(within_s) else None
    except (OSError, EOFError):
        return None


def obey(engine: PostgresEngine | SqliteEngine, control: Connection) -> None:
    """Carry out the orders that come, one after the other, in a thread of this process."""
    loop = asyncio.get_running_loop()
    threading.Thread(target=_obey, args=(engine, control, loop), name="storm-orders", daemon=True).start()


def _obey(
    engine: PostgresEngine | SqliteEngine, control: Connection, loop: asyncio.AbstractEventLoop
) -> None:
    with suppress(EOFError, OSError):
        while True:
            control.send(_carried_out(control.recv(), engine, loop))


def _carried_out(order: Order, engine: PostgresEngine | SqliteEngine, loop: asyncio.AbstractEventLoop) -> int:
    match order:
        case SetClock(offset_us):
            assert isinstance(engine, SqliteEngine)
            engine.clock.offset_us = offset_us
            return engine.clock.now_us()
        case BlockLoop(seconds):
            return _in_loop(loop, lambda: time.sleep(seconds), within_s=2 * seconds + ANSWER_S)
        case TakeDescriptors(seconds):
            return _without_descriptors(seconds)


def _in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], None], within_s: float) -> int:
    """Let the loop itself do it; how long it was away, in milliseconds."""
    done = threading.Event()
    began = time.monotonic()

    def carry_out() -> None:
        act()
        done.set()

    loop.call_soon_threadsafe(carry_out)
    done.wait(within_s)
    return round((time.monotonic() - began) * 1000)


def _without_descriptors(seconds: float) -> int:
    """Lower the limit to what is open: what asks for one more meets EMFILE."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    held: list[int] = []
    try:
        # Numbers that are free below the highest would still be given out.
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(numbers) + 1, limits[1]))
        with suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        time.sleep(seconds)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for number in held:
            os.close(number)
    return len(numbers)
