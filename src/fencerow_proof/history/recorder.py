"""Writes history lines so that a `kill -9` costs at most a torn last one.

    recorder = Recorder(folder)              # any process, any thread; each process gets a file of its own
    op = recorder.begin()
    recorder.write([recorder.line("invoke", op, 1, "submit", job=job_id)])
    ...
    recorder.write([recorder.line("ok", op, 1, "submit", job=job_id, new=True)])

Most callers want `recording(app, folder)` instead, which does this for every operation of an app.
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import socket
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from fencerow_proof.history.line import VERSION, Kind

log = logging.getLogger("fencerow.proof")

Fact = dict[str, Any]  # the fields of a line that a verb knows
SUFFIX = ".history.jsonl"


class Recorder:
    """The history of one process, in a file of its own below `folder`; the folder is made if need be.

    Keep the folder off the database under test and off its disk. Safe from any thread; after a fork the
    child goes on in a file of its own. Lines reach the operating system before `write` returns (they
    survive the process, not the machine).

    `sweep_s` tells the checker how often the workers look for the dead, if it is not the default.
    """

    def __init__(self, folder: str | Path, *, sweep_s: float | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._sweep_s = sweep_s
        self._lock = threading.Lock()
        self._pid = 0
        self._file = -1
        self._ops = itertools.count(1)
        self._behind_us: int | None = None  # database clock minus ours, when last seen
        self._broken: OSError | None = None
        self.process = ""
        self.path = self.folder

    def begin(self) -> int:
        """The number of a new operation.

        Raises:
            OSError: the history could not be written before; what is not recorded must not happen.
        """
        self._check_process()
        if self._broken is not None:
            raise self._broken
        return next(self._ops)

    def line(self, kind: Kind | str, op: int, step: int, verb: str, **facts: Any) -> Fact:
        """A line as of now; `facts` are fields of `Line`."""
        mono_us = now_us()
        line: Fact = {
            "kind": str(kind),
            "process": self.process,
            "op": op,
            "step": step,
            "verb": verb,
            "mono_us": mono_us,
        }
        if self._behind_us is not None:
            line["db_us"] = mono_us + self._behind_us
        line.update(facts)
        return line

    def write(self, lines: list[Fact]) -> None:
        """Append whole lines in one write.

        Raises:
            OSError: they could not be written. `begin` then fails as well.
        """
        if not lines:
            return
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        with self._lock:
            self._append(data)

    def write_end(self, lines: list[Fact]) -> None:
        """`write` for what has happened already: a failure is logged, and the step stays without an end."""
        try:
            self.write(lines)
        except OSError as error:
            log.warning("the history %s cannot be written: %s", self.path, error)

    def saw_clock(self, db_us: int, sent_us: int) -> None:
        """The database's clock was read by a statement sent at this `now_us()` and answered now."""
        self._behind_us = db_us - (sent_us + now_us()) // 2

    def effect(self, job: str, attempt: int, holder: str | None = None) -> None:
        """Note an effect outside of the database, such as a mail sent: one line of the outside sink."""
        self.write([self.line(Kind.OK, self.begin(), 1, "effect", job=job, attempt=attempt, holder=holder)])

    def close(self) -> None:
        """Close the file. A later line opens another."""
        with self._lock:
            if self._file >= 0 and self._pid == os.getpid():
                os.close(self._file)
            self._pid, self._file = 0, -1

    # --- inside ------------------------------------------------------------------------------------

    def _append(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self._broken = error
            raise

    def _check_process(self) -> None:
        if self._pid == os.getpid():
            return
        if self._pid != 0:
            self._lock = threading.Lock()  # a fork may have copied it in another thread's hands
        with self._lock:
            if self._pid != os.getpid():
                self._open()

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        pid = os.getpid()
        self.process = f"{pid}-{secrets.token_hex(4)}"
        self.path = self.folder / f"{self.process}{SUFFIX}"
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        head: Fact = {
            "kind": str(Kind.BEGIN),
            "process": self.process,
            "mono_us": now_us(),
            "wall_us": time.time_ns() // 1000,
            "boot": boot_id(),
            "host": socket.gethostname(),
            "pid": pid,
            "version": VERSION,
        }
        if self._sweep_s is not None:
            head["sweep_s"] = self._sweep_s
        self._broken = None
        self._append(msgspec.json.encode(head) + b"\n")
        self._pid = pid


def now_us() -> int:
    """The machine's monotonic clock: comparable between processes of one boot."""
    return time.monotonic_ns() // 1000


def boot_id() -> str:
    """What is the same in all processes whose monotonic clocks can be compared."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:  # macOS: its monotonic clock counts from the boot as well
        return socket.gethostname()
