"""The worker processes of the demo: the real command, on the demo's database, with short leases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

STOP_S = 15.0


@dataclass
class WorkerProcess:
    """One `fencerow worker` that we started."""

    name: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    holder: str = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def label(self) -> str:
        return self.name if self.is_alive else f"{self.name} dead"

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        """Let it drain and go; what does not listen is killed."""
        if self.is_alive:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.output.close()

    def last_words(self) -> str:
        """The end of what it wrote."""
        self.output.seek(0)
        return self.output.read()[-500:].decode(errors="replace")


def environment(database: Path, lease_s: float) -> dict[str, str]:
    """The settings of the demo: a database of its own and leases short enough to watch one run out."""
    return {
        "FENCEROW_URL": f"sqlite:///{database}",
        "FENCEROW_LEASE_S": f"{lease_s:g}",
        "FENCEROW_RENEW_S": f"{lease_s / 6:g}",
        "FENCEROW_SWEEP_S": "1",
        "FENCEROW_POLL_MAX_S": "0.2",
    }


def start_worker(name: str) -> WorkerProcess:
    """Start `fencerow worker` on the documents example."""
    output = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop)
    command = ["worker", "-A", "fencerow.demo.documents:app", "-Q", "documents:2", "--name", name]
    process = subprocess.Popen(
        [sys.executable, "-m", "fencerow.cli.main", *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=dict(os.environ),
    )
    return WorkerProcess(name, process, output)
