"""The world outside the rebuilt systems: services that are slow, broken or dead, as a test's script says.

Script and calls lie in files, so that a test sees and rules the calls of every process.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

FOLDER = "SYSTEMS_OUTSIDE"
WAIT_S = 30.0

Step = str | int


class ServiceError(Exception):
    """What a client library raises for an HTTP answer."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the service answered {status}")
        self.status_code = status


class Service:
    """One service. The script's steps are spent one per call; the last one stays.

    A step is "ok", "hang" (until the test lets it go on), "value error", "runtime error", "timeout", or the
    HTTP status to fail with.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    async def ask(self, subject: str) -> str:
        """Call it, as the systems do."""
        step = self._next(subject)
        if step == "hang":
            await until(self._file("release").exists)
        elif step == "value error":
            raise ValueError(f"{subject} cannot be read")
        elif step == "runtime error":
            raise RuntimeError(f"{self.name} stumbled over {subject}")
        elif step == "timeout":
            raise TimeoutError(f"{self.name} did not answer")
        elif isinstance(step, int):
            raise ServiceError(step)
        return f"{self.name} of {subject}"

    # --- what tests say and see ------------------------------------------------------------------

    def script(self, *steps: Step) -> None:
        """What becomes of the calls from now on."""
        self._file("calls").unlink(missing_ok=True)
        self._file("script").write_text(json.dumps(steps))

    def release(self) -> None:
        """Let hanging calls go on, and all that come."""
        self._file("release").touch()

    def calls(self) -> list[str]:
        """The subjects of the calls so far, in order."""
        return [subject for subject, _ in self._calls()]

    def pids(self) -> list[int]:
        """The processes that made them."""
        return [pid for _, pid in self._calls()]

    # --- inside ----------------------------------------------------------------------------------

    def _next(self, subject: str) -> Step:
        script = self._file("script")
        steps: list[Step] = json.loads(script.read_text()) if script.exists() else ["ok"]
        with self._file("calls").open("a+") as calls:
            fcntl.flock(calls, fcntl.LOCK_EX)
            calls.seek(0)
            number = len(calls.readlines())
            calls.write(json.dumps([subject, os.getpid()]) + "\n")
        return steps[min(number, len(steps) - 1)]

    def _calls(self) -> list[Any]:
        file = self._file("calls")
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _file(self, kind: str) -> Path:
        return Path(os.environ[FOLDER]) / f"{self.name}.{kind}"


async def until(happened: Any, what: str = "what was awaited") -> None:
    """Wait for a condition that some other process or thread brings about."""
    deadline = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen within {WAIT_S:.0f} s"
        await asyncio.sleep(0.01)
