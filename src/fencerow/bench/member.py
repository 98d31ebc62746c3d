"""The processes of the bench: a worker of its own, or the bare loop that it is measured beside.

The parent talks to it in lines of JSON: the first says what to be, each further one asks something.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fencerow.bench.place import BenchDatabase
from fencerow.core.errors import FencerowError

MODULE = "fencerow.bench.working"
LEAVE_S = 30.0


class MemberDied(RuntimeError):
    """A process of the bench ended before it had answered; what it wrote to its standard error is shown."""


class BenchMember:
    """One process, started with what it shall be."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, **question: Any) -> dict[str, Any]:
        """Send a question and wait for its answer."""
        self.tell(**question)
        return self.answer()

    def tell(self, **question: Any) -> None:
        """Send a question; `answer` gets what it says to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise MemberDied(f"a process of the bench ended with {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def member(place: BenchDatabase, role: str, **more: Any) -> Iterator[BenchMember]:
    """A process in this role; it has ended when the block has.

    Raises:
        MemberDied: it did not come up.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    found = BenchMember(process)
    try:
        # The URL may hold a password, and every user of the machine can read arguments.
        config = {"url": place.config.url, "schema": place.config.schema}
        if found.ask(role=role, config=config, **more) != {"ready": True}:
            raise FencerowError("a process of the bench did not report that it is ready")
        yield found
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
