"""The processes of the show: the world outside, and workers that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
STOP_S = 15.0


@contextmanager
def outside() -> Iterator[str]:
    """Start the world outside; gives its URL."""
    command = [sys.executable, "-m", "examples.chatbot.outside"]
    with subprocess.Popen(
        command, cwd=ROOT, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the world outside did not start"
            yield url
        finally:
            process.kill()


class Worker:
    """A `fencerow worker` of the chatbot, in a process of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self._log = (folder / f"{name}.log").open("wb")
        command = ["worker", "-A", "examples.chatbot.service:app", "-Q", "knowledge:2,broadcasts:4,inbound:2"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fencerow.cli.main", *command, "--name", name],
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
def worker(name: str, folder: Path) -> Iterator[Worker]:
    """A worker for as long as the block lasts."""
    running = Worker(name, folder)
    try:
        yield running
    finally:
        running.stop()


def _environment() -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
