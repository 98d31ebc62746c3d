"""Large payloads of a storm: a store in a folder, whose calls hang, fail or answer late as its weather says.

The weather is a file for all processes, or for one. A call that met it leaves a line, by which a fault is seen to
strike.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from fencerow.db.engine import Engine
from fencerow.errors import DatabaseError, StoreUnavailable
from fencerow.payloads import FolderStore
from fencerow.payloads.outside.names import OWNER
from fencerow.payloads.outside.store import StoredObject
from fencerow.payloads.outside.sweeping import Sweep
from tests.proof.storm.plan import STORE_ORPHAN_S

# hang: the call is made once the weather has passed, whoever still waits for it. late: it is made at once, and its
# answer comes then. lost: it is made, and answered by an error. fail: it is not made.
How = Literal["hang", "late", "lost", "fail"]
EVERYBODY: Final = "everybody"
ORPHAN_S = 3600.0
POLL_S = 0.01
SWEEP_S = 1.0


class StormStore(FolderStore):
    """The store as the process of this name has it. `age_s`: from this age on its objects count as old."""

    def __init__(self, folder: Path, name: str, age_s: float = STORE_ORPHAN_S) -> None:
        super().__init__(folder / "outside")
        self._weather = folder / "weather"
        self._weather.mkdir(exist_ok=True)
        self._name = name
        self._age_s = age_s

    def put(self, name: str, data: bytes) -> None:
        with self._met("put"):
            super().put(name, data)

    def get(self, name: str, bytes_max: int) -> bytes:
        with self._met("get"):
            return super().get(name, bytes_max)

    def delete(self, name: str) -> None:
        with self._met("delete"):
            super().delete(name)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """A storm lasts minutes: what is old in it counts as an hour old."""
        with self._met("list"):
            for each in super().list(prefix):
                yield StoredObject(each.name, each.age_s / self._age_s * ORPHAN_S)

    def met(self) -> int:
        """How much was met so far by the process of this name."""
        return _size(self._weather / f"{self._name}.met")

    def all_met(self) -> int:
        """How much was met so far by workers and clients: the names of these have a number."""
        return sum(map(_size, self._weather.glob("*-*.met")))

    @contextmanager
    def weather(self, how: How, whose: str = EVERYBODY) -> Iterator[None]:
        """Of this kind while the block lasts."""
        path = self._weather / whose
        new = path.with_suffix(".new")
        new.write_text(how)
        new.replace(path)
        try:
            yield
        finally:
            path.unlink()

    @contextmanager
    def _met(self, what: str) -> Iterator[None]:
        how = self._now()
        if how:
            self._note(f"{how} {what}")
        if how == "hang":
            self._passed()
        if how == "fail":
            raise StoreUnavailable("the store has a storm", "it fails", "ask again")
        yield
        if how == "late":
            self._passed()
        if how == "lost":
            raise StoreUnavailable("the store has a storm", "its answer is lost", "ask again")

    def _now(self) -> str:
        for whose in (EVERYBODY, self._name):
            with contextlib.suppress(OSError):  # none; or this process has no descriptors
                return (self._weather / whose).read_text()
        return ""

    def _passed(self) -> None:
        while self._now():
            time.sleep(POLL_S)

    def _note(self, text: str) -> None:
        with contextlib.suppress(OSError):
            file = os.open(self._weather / f"{self._name}.met", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, f"{text}\n".encode())
            finally:
                os.close(file)


def keep_sweeping(engine: Engine, store: StormStore, over: threading.Event) -> None:
    """What each worker does once an hour, all through the storm: nothing that is referred to may go by it."""
    sweep = Sweep(engine, store, ORPHAN_S)
    pause_s = SWEEP_S
    while not over.wait(pause_s):
        began = time.monotonic()
        with contextlib.suppress(DatabaseError, StoreUnavailable):
            sweep.remove()
        pause_s = max(SWEEP_S, 5 * (time.monotonic() - began))


def left_outside(engine: Engine, folder: Path) -> list[str]:
    """What lies in the store once all has ended and the last orphans were removed."""
    store = StormStore(folder, "the end", age_s=1e-9)
    sweep = Sweep(engine, store, ORPHAN_S)
    for _ in range(3):  # what belongs to no job goes at the second look
        sweep.remove()
    return [each.name for each in store.list("") if each.name != OWNER]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
