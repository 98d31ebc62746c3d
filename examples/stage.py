"""What the shows of the examples are made of: processes that can be killed, and numbers that are checked.

No part of a system that you would copy.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fencerow import FencerowError

ROOT = Path(__file__).parents[1]
STOP_S = 15.0
WAIT_S = 60.0


class Wrong(Exception):
    """Something is not as it should be."""


def must(holds: bool, what: str) -> None:
    """Go on only if it holds."""
    if not holds:
        raise Wrong(what)


def wait(happened: Callable[[], object], what: str) -> None:
    """Look again and again until it has happened."""
    until = time.monotonic() + WAIT_S
    while not happened():
        must(time.monotonic() < until, f"{what} did not come within {WAIT_S:.0f} s")
        threading.Event().wait(0.05)


def title(text: str) -> None:
    """A scene begins."""
    sys.stdout.write(f"\n{text}\n")


def say(text: str) -> None:
    """A line of the scene."""
    sys.stdout.write(f"  {text}\n")
    sys.stdout.flush()


def played(scenes: Callable[[], None], end: Callable[[], None]) -> int:
    """Play the scenes of a show, and end it; returns its exit code, 1 after a number that is not what it should be."""
    try:
        scenes()
    except Wrong as wrong:
        sys.stderr.write(f"WRONG: {wrong}\n")
        return 1
    except FencerowError as error:
        sys.stderr.write("\n".join(error.lines()) + "\n")
        return 1
    finally:
        end()
    return 0


@contextmanager
def outside(module: str) -> Iterator[str]:
    """Start a world outside as a process of its own, which prints its URL; gives it."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the world outside did not start"
            yield url
        finally:
            process.kill()


class Worker:
    """A `fencerow worker`, in a process of its own. Its log is a file in `folder`."""

    def __init__(self, app: str, queues: str, name: str, folder: Path) -> None:
        self._log = (folder / f"{name}.log").open("wb")
        command = ["worker", "-A", app, "-Q", queues, "--name", name]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fencerow.cli.main", *command],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.pid = self._process.pid

    def kill(self) -> None:
        """As kill -9 does: nothing in it hears of that."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def terminate(self) -> None:
        """As a deploy does: it takes no more, ends what it does, and goes."""
        self._process.terminate()

    def ended(self, within_s: float) -> int:
        """Wait for its end; returns the exit code."""
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise Wrong(f"the worker had not ended after {within_s:.0f} s") from None

    def stop(self) -> None:
        """Let it finish what it does, and go."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()


@contextmanager
def worker(app: str, queues: str, name: str, folder: Path) -> Iterator[Worker]:
    """A worker for as long as the block lasts."""
    running = Worker(app, queues, name, folder)
    try:
        yield running
    finally:
        running.stop()


def _environment() -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
