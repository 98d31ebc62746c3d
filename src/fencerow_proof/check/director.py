"""Starts the runs of a handler and leads them action by action."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import fencerow_proof.errors as ours
from fencerow import errors
from fencerow.core.errors import FencerowError
from fencerow.core.model.job import Claimed
from fencerow_proof.check.kinds import Action, Kind
from fencerow_proof.check.options import Options
from fencerow_proof.check.process import Process, hear_any
from fencerow_proof.check.scratch import Scratch
from fencerow_proof.check.warm import Warm, warm
from fencerow_proof.check.wire import (
    Channel,
    Fork,
    Hello,
    Load,
    Loaded,
    Play,
    Prepare,
    Prepared,
    Refused,
    Start,
)
from fencerow_proof.errors import CheckArguments, CheckNeedsMore, CheckStuck, NothingToCheck

START_S = 60.0
ACTIONS_MAX = 2000  # of one run
LOOK_S = 0.003  # how often a statement that does not end is looked at
# A process that does nothing for so long, and does not compute, waits for something that is no statement.
AWAY_S = 0.3


class Director:
    """The starter of one application, and the processes that it forks."""

    def __init__(self, folder: Path, options: Options, preset: dict[str, str]) -> None:
        self._log = folder / "starter.log"
        self._address = str(folder / "s")
        self._options = options
        self._numbers = 0
        self._processes: list[Process] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._address)
        self._listener.listen()
        self._listener.settimeout(0.5)
        self._preset = preset
        self._warm: Warm | None = None
        self._pid = 0  # of the starter

    def load(self) -> Loaded:
        """Let the starter import the application.

        Raises:
            FencerowError: what it met.
        """
        options = self._options
        self._start()
        self._starter, _ = self._accepted(0)
        self._starter.send(
            Load(
                list(sys.path),
                options.job,
                options.app,
                options.args,
                list(options.outside),
                options.setup,
                options.is_stored,
            )
        )
        answer = self._starter.heard_from_process()
        if isinstance(answer, Loaded):
            return answer
        if isinstance(answer, Refused):
            raise raised(answer)
        raise self._died()

    def prepare(self, scratch: Scratch, ids: list[str]) -> None:
        """Make the tables of the pattern and submit the job."""
        process = self._fork(scratch.url, Prepare(ids))
        until = time.monotonic() + self._options.run_s
        while not process.is_over:
            if not hear_any([process], 0.5) and time.monotonic() > until:
                process.kill()
                raise CheckStuck("the setup does not come to its end", "", "look what it waits for")
        said = process.said
        process.kill()
        if isinstance(said, Refused):
            raise raised(said)
        if not isinstance(said, Prepared):
            raise self._died()

    def start(self, scratch: Scratch, claimed: Claimed, holder: str, passed_s: float = 0.0) -> Process:
        """Start a run; it waits before its first action."""
        play = Play(claimed, holder, list(self._options.allowed), str(scratch.folder), passed_s)
        return self._fork(scratch.url, play)

    def settle(self, scratch: Scratch, processes: Sequence[Process]) -> None:
        """Wait until each process waits for a word, for a lock, or for something that is no statement.

        Raises:
            CheckStuck: none of them goes on.
        """
        until = time.monotonic() + self._options.run_s
        while True:
            moving = [each for each in processes if not each.waits]
            if not moving:
                return
            if hear_any(moving, LOOK_S):
                continue
            if all(self._stands(scratch, each) for each in moving) and len(moving) < len(processes):
                return
            if len(moving) == len(processes) and all(self._is_blocked(scratch, each) for each in moving):
                return  # in a ring: the server breaks it
            if time.monotonic() > until:
                raise self._stuck(moving[0])

    def run(
        self,
        scratch: Scratch,
        process: Process,
        until: int | None = None,
        refused: frozenset[Kind] = frozenset(),
    ) -> None:
        """Let one run go on to its end, or to its action of that number, counted from 0. Actions of the `refused`
        kinds fail.

        Raises:
            CheckStuck: it does not come to its end in time.
        """
        while True:
            self.settle(scratch, [process])
            if process.is_over or len(process.trace) == until:
                return
            if len(process.trace) > ACTIONS_MAX:
                raise self._stuck(process)
            if process.busy:
                process.fail()  # nobody else is there who could give the lock back
            elif process.pending is not None and process.pending.kind in refused:
                process.fail()
            elif process.pending is not None:
                process.go()

    def close(self) -> None:
        """End the starter and every fork that still runs: a handler that never asks would never notice."""
        for process in self._processes:
            process.kill()
        if hasattr(self, "_starter"):
            self._starter.close()
        self._listener.close()
        if self._warm is not None and self._pid:
            self._warm.end(self._pid)

    def log_tail(self) -> str:
        """What the processes wrote on their standard error at last."""
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _start(self) -> None:
        environment = {
            **os.environ,
            **self._preset,
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        }
        lines = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
        self._log.touch()
        self._warm = warm(self._log)
        try:
            self._pid = self._warm.start(Start(self._address, str(self._log), os.fsencode(Path.cwd()), lines))
        except ConnectionError:
            raise self._died() from None

    def _stands(self, scratch: Scratch, process: Process) -> bool:
        if self._is_blocked(scratch, process):
            return True
        is_silent = not process.doing and time.monotonic() - process.heard_at > AWAY_S
        return is_silent and not process.is_at_work  # a slow machine has let nobody run for longer

    def _is_blocked(self, scratch: Scratch, process: Process) -> bool:
        backends = {action.backend for action in process.doing.values() if action.backend is not None}
        return bool(backends) and scratch.blocked(backends)

    def _fork(self, url: str, part: Prepare | Play) -> Process:
        self._numbers += 1
        self._starter.send(Fork(self._numbers, url, part))
        process = Process(*self._accepted(self._numbers))
        self._processes.append(process)
        return process

    def _accepted(self, number: int) -> tuple[Channel, int]:
        channel = Channel(self._connection())
        hello = channel.heard_from_process()
        if not isinstance(hello, Hello) or hello.number != number:
            raise self._died()
        return channel, hello.pid

    def _connection(self) -> socket.socket:
        until = time.monotonic() + START_S
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                if self._warm is None or not self._warm.is_here or time.monotonic() > until:
                    raise self._died() from None
            else:
                connection.settimeout(None)
                return connection

    def _died(self) -> CheckNeedsMore:
        return CheckNeedsMore(
            "the process that imports the application ended without an answer",
            self.log_tail() or "it said nothing",
            "import the application by hand and look at the error",
        )

    def _stuck(self, process: Process) -> CheckStuck:
        action: Action | None = next(
            iter(process.doing.values()), process.trace[-1] if process.trace else None
        )
        return CheckStuck(
            f"a run of the handler did not come to its end within {self._options.run_s:g} s and {ACTIONS_MAX} actions",
            f"its last action was at {action.place}: {action.line}"
            if action
            else "the check saw no action of it",
            "look what it waits for there; declare its calls of other systems",
        )


def raised(refused: Refused) -> FencerowError:
    """The error that a process met, as it was."""
    kind = vars(ours).get(refused.kind) or vars(errors).get(refused.kind, CheckNeedsMore)
    found = kind(refused.what, refused.why, refused.fix)
    if isinstance(found, errors.UnknownJob):
        return NothingToCheck(refused.what, refused.why, refused.fix)
    if isinstance(found, errors.InvalidInput):
        return CheckArguments(refused.what, refused.why, refused.fix)
    assert isinstance(found, FencerowError)
    return found
