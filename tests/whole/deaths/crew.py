"""Real worker processes: started as children that die with the test, ended by every means, and counted at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import Busy
from fencerow.operators import looking
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S

SCRIPT = Path(__file__).with_name("member.py")
ROOT = SCRIPT.parents[3]

T = TypeVar("T")


def engine_of(target: str) -> SqliteEngine | PostgresEngine:
    """The engine behind a command-line argument: a PostgreSQL URL or the path of a SQLite file."""
    if target.startswith("postgresql:"):
        return PostgresEngine(target, store.postgres_queries(), connect_timeout_s=PATIENCE_S)
    return SqliteEngine(target, store.sqlite_queries())


class Crew:
    """Worker processes of one test. Each is replaced by hand, never by itself."""

    def __init__(self, target: str, log: Path, lease_s: float, script: Path) -> None:
        self._target = target
        self._script = script
        self._log = log
        self._lease_s = lease_s
        self.members: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            member = subprocess.Popen(
                [sys.executable, str(self._script), self._target, str(self._lease_s), str(os.getpid())],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": module_path(ROOT / "src", ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.members.append(member)
        return member

    def alive(self) -> list[subprocess.Popen[bytes]]:
        return [member for member in self.members if member.poll() is None]

    def bury(self, engine: Engine) -> None:
        """End the registrations of those whose process has ended, as their lease would in time.

        So leases may be long, and nobody who lives is taken for dead, however slow the machine is.
        """
        living = {member.pid for member in self.alive()}
        ended = {member.pid for member in self.members} - living
        for each in patiently(partial(engine.run, store.list_workers(state="alive"))):
            if each.pid in ended:
                patiently(partial(engine.run, store.retire(holder=each.id)))

    def keep(self, size: int, engine: Engine) -> int:
        """Start as many as have died, as a supervisor does; returns how many had."""
        missing = size - len(self.alive())
        if missing:
            self.bury(engine)
        for _ in range(missing):
            self.start()
        return missing

    def end(self) -> None:
        """Ask all to stop; what does not is killed, and reported."""
        for member in self.alive():
            member.send_signal(signal.SIGCONT)
            member.send_signal(signal.SIGTERM)
        late = []
        for member in self.members:
            try:
                member.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                late.append(member.pid)
                member.kill()
                member.wait()
        assert not late, f"workers {late} did not stop when asked:\n{self.tail()}"

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def crew(target: str, folder: Path, size: int, lease_s: float = 2.0, script: Path = SCRIPT) -> Iterator[Crew]:
    """`size` worker processes; none is left at the end."""
    made = Crew(target, folder / "workers.log", lease_s, script)
    try:
        for _ in range(size):
            made.start()
        yield made
        made.end()
    finally:
        for member in made.alive():
            member.kill()
            member.wait()


def wait_until(done: Callable[[], bool], what: Callable[[], str], within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what()}"
        time.sleep(0.05)


def live(engine: Engine) -> int:
    """How many jobs have not ended."""
    return sum(found.jobs for found in patiently(partial(engine.run, looking.counts())))


def patiently(ask: Callable[[], T]) -> T:
    """What it returns; asked again while a SQLite file stays locked by others."""
    while True:
        try:
            return ask()
        except Busy:
            continue
