"""`fencerow dev`: a worker in a process of its own, which starts again when a source file of the application changes.

The old process leaves as at a SIGTERM: it lets running jobs end, and releases those that take too long, so that no work
is lost. Then the new one starts. If it cannot, it has said why, and the next change starts another.
"""

from __future__ import annotations

import logging
import math
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from fencerow.cli.signals import Signals
from fencerow.cli.sources import Sources
from fencerow.db.errors import exits
from fencerow.db.socket_pairs import socket_pair
from fencerow.supervisor.member import MemberProcess
from fencerow.supervisor.restarts import Restarts

log = logging.getLogger("fencerow.dev")

SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOOK_S = 0.3
SHARE = 10  # of the time, the part that may go into looking at very many files
PATIENCE_S = 3.0  # for running jobs to end before they are released: somebody waits for the new code
KILL_S = 30.0  # beyond that; its jobs then wait for the end of its lease
ENDING_S = 0.05
NAMES_MAX = 3


class Reloader:
    """One process at a time. Used in the main thread, but for the signals."""

    def __init__(self, start: Callable[[], MemberProcess], sources: Sources) -> None:
        self._start = start
        self._sources = sources
        self._restarts = Restarts()
        self._member: MemberProcess | None = None
        self._start_at = 0.0  # infinite: when a file changes
        self._was_ready = False  # some process was
        self._asked = self._passed = 0  # how often it was told to end, and has told the process
        self._is_reloading = False
        self._hurry_at = self._kill_at = math.inf
        self._look_at = 0.0
        self._changed: set[str] = set()

    def run(self) -> int:
        """Until it is told to end, or the worker ends in order; returns its exit code."""
        awake, self._waker = socket_pair()
        with awake, self._waker, Signals(SIGNALS, self._signalled):
            awake.setblocking(False)
            self._waker.setblocking(False)
            folders = " and ".join(map(str, self._sources.folders))
            log.info("watching %d source files in %s", self._sources.count, folders)
            try:
                while (code := self._turn(time.monotonic())) is None:
                    self._wait(awake)
                return code
            finally:
                if self._member is not None:
                    self._member.close()  # after an error of ours: it leaves in order

    def _turn(self, now: float) -> int | None:
        """Look at everything, and act; returns the exit code at the end."""
        member = self._member
        if member is not None and (code := member.ended()) is not None:
            return self._after_end(member, code, now)
        if member is not None:
            self._command(member, now)
        elif self._asked:
            return exits.OK
        elif now >= self._start_at:
            self._member = self._start()
        self._look(now)
        return None

    def _wait(self, awake: socket.socket) -> None:
        """Until something happens, or it is time to look again."""
        member = self._member
        heard = [awake] if member is None else [awake, member.lifeline]
        readable, _, _ = select.select(heard, [], [], max(0.0, self._look_at - time.monotonic()))
        if awake in readable:
            awake.recv(64)
        if member is not None and member.lifeline in readable:
            if not member.hear():
                time.sleep(ENDING_S)  # it has closed its end, and ends
            self._was_ready = self._was_ready or member.ready_at is not None

    def _signalled(self, _name: str) -> None:
        self._asked += 1
        try:
            self._waker.send(b"!")
        except OSError:
            pass  # it is awake, with so many signals

    # --- the process ----------------------------------------------------------------------------------

    def _command(self, member: MemberProcess, now: float) -> None:
        if self._asked > self._passed:
            self._passed = self._asked
            member.order(hurry=self._asked > 1)
        if now >= self._hurry_at:
            self._hurry_at, self._kill_at = math.inf, now + KILL_S
            member.order(hurry=True)
        if now >= self._kill_at:
            self._kill_at = math.inf
            member.kill(f"it did not end within {KILL_S:g} s")

    def _after_end(self, member: MemberProcess, code: int, now: float) -> int | None:
        member.hear()
        member.close()
        self._member = None
        self._hurry_at = self._kill_at = math.inf
        is_reloading, self._is_reloading = self._is_reloading, False
        if self._asked:
            return code
        if is_reloading:
            self._start_at = now
            return None
        if code == exits.OK or not (self._was_ready or member.ready_at is not None):
            return code  # an operator has ended it; or it has never worked, and says why
        if member.ready_at is None:
            self._start_at = math.inf
            log.error("the worker %s; it starts again when a source file changes", member.last_words())
        else:
            pause_s = self._restarts.died(member.number, code, now - member.ready_at)
            self._start_at = now + pause_s
            log.error("the worker %s; it starts again in %.1f s", member.last_words(), pause_s)
        return None

    # --- the files ------------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """Look whether files have changed; act when they change no more."""
        if now < self._look_at:
            return
        new = self._sources.changed()
        self._look_at = time.monotonic() + max(LOOK_S, SHARE * (time.monotonic() - now))
        self._changed |= new
        if self._changed and not new:
            names = sorted(Path(each).name for each in self._changed)
            self._changed = set()
            if not self._asked:
                self._reload(names, now)

    def _reload(self, names: list[str], now: float) -> None:
        more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
        log.info("changed: %s%s; the worker starts again", ", ".join(names[:NAMES_MAX]), more)
        if self._member is None:
            self._start_at = now
        elif not self._is_reloading:
            self._is_reloading, self._hurry_at = True, now + PATIENCE_S
            self._member.order(hurry=False)
