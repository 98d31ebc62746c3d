"""One worker process, as its supervisor sees it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.worker.vitals import Vitals
from fencerow.db.errors import exits
from fencerow.db.socket_pairs import socket_pair
from fencerow.supervisor.lifeline import HURRY, LEAVE

Command = Callable[[int, int], Sequence[str]]  # of a place's number and the descriptor of its lifeline

_decoder = msgspec.json.Decoder(Vitals)
LINE_MAX = 65_536


class MemberProcess:
    """A process with a lifeline. Used by one thread only, which also reaps it: its number is nobody else's meanwhile.

    It is out of the terminal's reach: a Ctrl-C reaches the supervisor alone, which passes it on once.
    """

    def __init__(self, number: int, command: Command, environ: Mapping[str, str]) -> None:
        """Raises:
        OSError: the system has no room for another process.
        """
        self.number = number
        self.vitals: Vitals | None = None  # as it said last
        self.heard_at = time.monotonic()
        self.ready_at: float | None = None  # since when it has been ready, at the earliest
        self.unwell_since: float | None = None
        self.is_told = False  # to leave
        self.has_said_done = False
        self.killed_for: str | None = None
        self.is_slow_told = False  # that its start takes long
        self.has_start_ended = False
        self._text = b""
        self.lifeline, theirs = socket_pair()
        try:
            with theirs:
                self.process = subprocess.Popen(
                    list(command(number, theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    env=dict(environ),
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except BaseException:
            self.lifeline.close()
            raise
        self.lifeline.setblocking(False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_ready(self) -> bool:
        return self.vitals is not None and self.vitals.is_ready and not self.is_told

    def hear(self) -> bool:
        """Take in what it has said; false when it will say nothing more."""
        try:
            text = self.lifeline.recv(LINE_MAX)
        except BlockingIOError:
            return True
        except OSError:
            return False
        *lines, self._text = (self._text + text)[-LINE_MAX:].split(b"\n")
        for line in lines:
            self._heard(line)
        return bool(text)

    def order(self, *, hurry: bool) -> None:
        """Tell it to leave, or to be quick about it."""
        self.is_told = True
        try:
            self.lifeline.send(HURRY if hurry else LEAVE)
        except OSError:
            pass  # it is gone already

    def kill(self, why: str) -> None:
        """End it now: it cannot help itself."""
        self.killed_for = self.killed_for or why
        self.process.send_signal(signal.SIGKILL)

    def end_start(self) -> None:
        """End what has not begun to listen to its lifeline: it is still importing, and holds nothing."""
        if not self.has_start_ended:
            self.has_start_ended = True
            self.process.send_signal(signal.SIGTERM)

    def ended(self) -> int | None:
        """Its exit code as that of a command, when it has ended."""
        code = self.process.poll()
        if code == exits.OK and not self.is_told:
            # A handler, or a library below it, can end the process with any code: what counts is what the worker said.
            self.hear()
            return exits.OK if self.has_said_done else exits.FAILED
        if code is None or code >= 0:
            return code
        # One that was told to leave dies of another request to leave only outside its worker's life: it holds nothing.
        return exits.OK if self.is_told and -code in (signal.SIGTERM, signal.SIGINT) else exits.FAILED

    def last_words(self) -> str:
        """How it ended, in words."""
        code = self.process.returncode
        if self.killed_for:
            return f"was killed: {self.killed_for}"
        if code == exits.OK and not self.is_told and not self.has_said_done:
            return "ended with exit code 0 and did not say why"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    def close(self) -> None:
        """Cut the lifeline: if it lives, it leaves in order."""
        self.lifeline.close()

    def _heard(self, line: bytes) -> None:
        try:
            self.vitals = _decoder.decode(line)
        except msgspec.MsgspecError:
            return  # half a line, where the pipe was full: the next one comes in a second
        self.heard_at = time.monotonic()
        self.has_said_done = self.has_said_done or self.vitals.is_done
        if self.vitals.is_ready and self.ready_at is None:
            self.ready_at = self.heard_at


@dataclass(slots=True)
class MemberPlace:
    """Room for one process. `start_at`: when it is filled again. `is_done`: its process has left in order."""

    number: int
    member: MemberProcess | None = None
    start_at: float = 0.0
    is_done: bool = False
