"""The world outside the rebuilt systems: services that are slow, broken or dead, as a test's script says.

Script and calls lie in files, so that a test sees and rules the calls of every process.
"""

from __future__ import annotations

import asyncio
import fcntl
import inspect
import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.kit.pace import PATIENCE_S

FOLDER = "SYSTEMS_OUTSIDE"
WAIT_S = PATIENCE_S

Step = str | int
TROUBLES: dict[str, type[Exception]] = {
    "value error": ValueError,
    "runtime error": RuntimeError,
    "timeout": TimeoutError,
    "dead": ConnectionError,
}


class ServiceError(Exception):
    """What a client library raises for an HTTP answer."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the service answered {status}")
        self.status_code = status


class Service:
    """One service. The script's steps are spent one per call; the last one stays.

    A step is "ok", "hang" (until the test lets it go on), "deaf" (the same, and no cancel is heard), one of the
    TROUBLES, or the HTTP status to fail with.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    async def ask(self, subject: str) -> str:
        """Call it, as the systems do."""
        number, step = self._next(subject)
        if step == "hang":
            await until(lambda: self._file("release").exists() or self._file(f"release-{number}").exists())
        if step == "deaf":
            await self._ignoring_cancels()
        return self._answer(step, subject)

    def ask_now(self, subject: str) -> str:
        """Call it from code that is not async; it never hangs there."""
        return self._answer(self._next(subject)[1], subject)

    # --- what tests say and see ------------------------------------------------------------------

    def script(self, *steps: Step) -> None:
        """What becomes of the calls from now on."""
        self._file("calls").unlink(missing_ok=True)
        self._file("script").write_text(json.dumps(steps))

    def release(self, number: int | None = None) -> None:
        """Let hanging calls go on, and all that come; or the one call that came as this one, counted from 0."""
        self._file("release" if number is None else f"release-{number}").touch()

    def answered_late(self) -> bool:
        """Whether a call that heard no cancel is through."""
        return self._file("late").exists()

    def calls(self) -> list[str]:
        """The subjects of the calls so far, in order."""
        return [subject for subject, _ in self._calls()]

    def pids(self) -> list[int]:
        """The processes that made them."""
        return [pid for _, pid in self._calls()]

    # --- inside ----------------------------------------------------------------------------------

    async def _ignoring_cancels(self) -> None:
        while not self._file("release").exists():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                pass
        self._file("late").touch()

    def _answer(self, step: Step, subject: str) -> str:
        if isinstance(step, int):
            raise ServiceError(step)
        if step in TROUBLES:
            raise TROUBLES[step](f"{self.name}: {step} at {subject}")
        return f"{self.name} of {subject}"

    def _next(self, subject: str) -> tuple[int, Step]:
        """Which call this is, and what becomes of it."""
        script = self._file("script")
        steps: list[Step] = json.loads(script.read_text()) if script.exists() else ["ok"]
        with self._file("calls").open("a+") as calls:
            fcntl.flock(calls, fcntl.LOCK_EX)
            calls.seek(0)
            number = len(calls.readlines())
            calls.write(json.dumps([subject, worker_pid()]) + "\n")
        return number, steps[min(number, len(steps) - 1)]

    def _calls(self) -> list[Any]:
        file = self._file("calls")
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _file(self, kind: str) -> Path:
        return Path(os.environ[FOLDER]) / f"{self.name}.{kind}"


def write(db: Any, statement: str, *values: Any) -> None:
    """Run a statement in psycopg's words; the scenarios also run on SQLite, which marks parameters differently."""
    db.execute(statement.replace("%s", "?") if isinstance(db, sqlite3.Connection) else statement, values)


async def until(happened: Any, what: str = "what was awaited") -> None:
    """Wait for a condition that something else brings about. `happened` may be async: it must be, where what this event
    loop does could keep it waiting, such as a transaction that holds a file."""
    deadline = time.monotonic() + WAIT_S
    while not (await found if inspect.isawaitable(found := happened()) else found):
        assert time.monotonic() < deadline, f"{what} did not happen within {WAIT_S:.0f} s"
        await asyncio.sleep(0.01)


def worker_pid() -> int:
    """The worker that runs this: a suspect runs in a child process, whose parent is its warden, the worker's child."""
    main = getattr(sys.modules["__main__"], "__file__", None) or ""
    if Path(main).name != "_boot.py":
        return os.getpid()
    return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(os.getppid())]))
