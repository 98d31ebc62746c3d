"""One parent for several worker processes: starts them, starts them again, passes orders on, and outlives none of them.

It has no connection to the database and loads no application. It looks at all processes, decides, and acts, again and
again, in one thread: whenever one of them ends or says something, when a signal comes, and every second.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from fencerow.db.errors import exits
from fencerow.db.socket_pairs import socket_pair
from fencerow.db.text import amount
from fencerow.supervisor.errors import WorkersNotStarted
from fencerow.supervisor.member import Command, MemberPlace, MemberProcess
from fencerow.supervisor.restarts import Restarts
from fencerow.supervisor.rolling import Rolling
from fencerow.supervisor.standing import Standing, of_several

log = logging.getLogger("fencerow.supervisor")

LOOK_S = 1.0
QUIET_S = 3.0  # without a word, and a process is no longer known to be well
STALE_S = 30.0  # a supervisor that has not looked for so long is no longer alive


class Supervisor:
    """Keeps `count` processes alive until it is told to leave.

    `command` is asked for the command line of each process. `tell` hears after each look how all of this stands; there
    is one every `look_s` seconds at least.
    """

    def __init__(
        self,
        count: int,
        command: Command,
        environ: Mapping[str, str],
        *,
        restarts: Restarts | None = None,
        tell: Callable[[Standing], None] | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        self._count = count
        self._command = command
        self._environ = environ
        self._restarts = restarts or Restarts()
        self._tell = tell
        self._look_s = look_s
        self._places = [MemberPlace(number) for number in range(1, count + 1)]
        self._rolling = Rolling(self._start, self._bury)
        self._selector = selectors.DefaultSelector()
        self._asked = 0  # how often it was told to leave
        self._passed = 0  # how often it has told the processes
        self._roll_asked = False
        self._worst = exits.OK
        self._hopeless: int | None = None
        self._is_said = False  # how many slots and connections there are
        self._looked_at = time.monotonic()

    def run(self) -> int:
        """Until all processes have ended; returns the worst exit code among those that were not started again.

        Raises:
            WorkersNotStarted: they die at their start again and again, or refuse it.
        """
        awake, waker = socket_pair()
        with awake, waker, self._selector, _Signals(waker, self._signalled):
            awake.setblocking(False)
            self._selector.register(awake, selectors.EVENT_READ)
            try:
                while self._turn():
                    self._wait(awake)
            finally:
                # Only an error of ours leaves any: they see the end of their lifelines, and leave.
                for member in self._members():
                    self._bury(member)
        return self._result()

    def standing(self) -> Standing:
        """How all of this stands, from any thread."""
        members = self._members()
        faults = []
        silent_s = time.monotonic() - self._looked_at
        if silent_s > STALE_S:
            faults.append(f"the supervisor has not looked for {silent_s:.0f} s")
        if members and all(each.unwell_since is not None for each in members):
            faults.append("no process is well")
        return of_several(
            [each.vitals for each in members], self._count, leaving=self._asked > 0, faults=tuple(faults)
        )

    # --- one look ----------------------------------------------------------------------------------------

    def _turn(self) -> bool:
        """Look, decide, act; returns whether to go on."""
        now = time.monotonic()
        if now - self._looked_at > 3 * LOOK_S:
            self._forgive(now)  # this process was stopped, and maybe all of them
        self._looked_at = now
        self._pass_on()  # before the ends are judged: who leaves now does as it is told
        for place in self._places:
            self._look_at(place, now)
        self._greet()
        self._judge(now)
        self._pass_on()
        self._roll()
        if not self._asked:
            self._fill(now)
        _reap_strangers({each.pid for each in self._members()})
        if self._tell is not None:
            self._tell(self.standing())
        return bool(self._members()) or self._is_wanted()

    def _look_at(self, place: MemberPlace, now: float) -> None:
        member = place.member
        if member is None or (code := member.ended()) is None:
            return
        self._bury(member)
        place.member = None
        if self._asked:
            self._worst = max(self._worst, code)
            log.info("process %d %s", place.number, member.last_words())
        elif code == exits.OK:
            # `--once` and `--drain` have an end, and an operator may have told this worker to drain.
            place.is_done = True
            self._restarts.ready()  # it has shown that it can be done, also where it was gone before we looked
            log.info("process %d has left in order, and is not started again", place.number)
        else:
            self._died(place, member, code, now)

    def _died(self, place: MemberPlace, member: MemberProcess, code: int, now: float) -> None:
        ready_s = None if member.ready_at is None else now - member.ready_at
        pause_s = self._restarts.died(place.number, code, ready_s)
        any_ready = any(each.is_ready for each in self._members())
        if self._restarts.is_hopeless(code, any_ready=any_ready):
            log.error("process %d %s before it was ready", place.number, member.last_words())
            self._hopeless = max(code, self._restarts.worst)
            self._asked = max(self._asked, 1)
            return
        place.start_at = now + pause_s
        log.error("process %d %s; it is started again in %.1f s", place.number, member.last_words(), pause_s)

    def _greet(self) -> None:
        """Note who is ready, and say once what all of them are together."""
        ready = [each for each in self._members() if each.is_ready]
        if not ready:
            return
        if self._restarts.failed_starts or not self._restarts.ever_ready:
            self._restarts.ready()
        if not self._is_said and len(ready) == self._count:
            self._is_said = True
            log.info("%s", self._described(ready))

    def _described(self, ready: list[MemberProcess]) -> str:
        known = [each.vitals for each in ready if each.vitals is not None]
        slots, connections = sum(each.slots for each in known), sum(each.connections for each in known)
        ready_now = amount(self._count, "process is", "processes are")
        text = f"{ready_now} ready: {amount(slots, 'slot')} ({' + '.join(str(each.slots) for each in known)})"
        return f"{text}, at most {amount(connections, 'connection')}" if connections else text

    def _judge(self, now: float) -> None:
        """End those that cannot help themselves: code that keeps the interpreter's lock is deaf to all but that."""
        patience = self._restarts.patience
        for member in self._members():
            if member.killed_for:
                continue
            silent_s = now - member.heard_at
            if member.vitals is None:
                self._judge_start(member, silent_s)
                continue
            faults = member.vitals.faults
            if silent_s < min(QUIET_S, patience.silent_s) and not faults:
                member.unwell_since = None
                continue
            member.unwell_since = member.unwell_since or now
            if silent_s > patience.silent_s:
                self._kill(member, f"it has said nothing for {silent_s:.0f} s")
            elif faults and now - member.unwell_since > patience.unwell_s:
                self._kill(member, "; ".join(faults))

    def _judge_start(self, member: MemberProcess, silent_s: float) -> None:
        """An import may take long, or hang. While all are told to leave it is of no use."""
        patience = self._restarts.patience
        if member.is_told and silent_s > patience.unwell_s:
            member.end_start()
        if silent_s > patience.start_s:
            self._kill(member, f"it has not started within {patience.start_s:g} s")
        elif silent_s > patience.slow_start_s and not member.is_slow_told:
            member.is_slow_told = True
            log.warning(
                "process %d has been starting for %.0f s, and is killed after %g s: "
                "is the database away, or does an import hang?",
                *(member.number, silent_s, patience.start_s),
            )

    def _kill(self, member: MemberProcess, why: str) -> None:
        log.error("process %d is killed: %s", member.number, why)
        member.kill(why)

    def _forgive(self, now: float) -> None:
        for member in self._members():
            member.heard_at = max(member.heard_at, now)
            member.unwell_since = None

    def _pass_on(self) -> None:
        """Tell all to leave: once, and once more to be quick."""
        if self._passed >= min(self._asked, 2):
            return
        self._passed = min(self._asked, 2)
        members = self._members()
        what = "release their jobs and end" if self._passed > 1 else "end"
        log.info("%s told to %s", amount(len(members), "process is", "processes are"), what)
        for member in members:
            member.order(hurry=self._passed > 1)

    def _roll(self) -> None:
        if self._roll_asked and not self._asked:
            self._rolling.begin([place for place in self._places if place.member is not None])
        self._roll_asked = False
        self._rolling.step(leaving=self._asked > 0)

    def _fill(self, now: float) -> None:
        for place in self._places:
            if place.member is not None or place.is_done or now < place.start_at:
                continue
            if self._rolling.is_filling(place):
                continue
            if place.number > 1 and not self._restarts.ever_ready:
                continue  # the first one shows whether it can be done at all
            try:
                place.member = self._start(place.number)
            except OSError as error:
                pause_s = self._restarts.died(place.number, exits.FAILED, None)
                place.start_at = now + pause_s
                log.error("process %d cannot be started: %s; again in %.1f s", place.number, error, pause_s)

    # --- what it acts on ----------------------------------------------------------------------------------

    def _start(self, number: int) -> MemberProcess:
        member = MemberProcess(number, self._command, self._environ)
        self._selector.register(member.lifeline, selectors.EVENT_READ, member)
        log.info("process %d is started, with process id %d", number, member.pid)
        return member

    def _bury(self, member: MemberProcess) -> None:
        self._quiet(member)
        member.close()

    def _quiet(self, member: MemberProcess) -> None:
        if member.lifeline.fileno() in self._selector.get_map():
            self._selector.unregister(member.lifeline)

    def _wait(self, awake: socket.socket) -> None:
        for key, _ in self._selector.select(self._pause_s()):
            if isinstance(key.data, MemberProcess):
                if not key.data.hear():
                    self._quiet(key.data)  # its death is told by a signal
            else:
                awake.recv(4096)

    def _pause_s(self) -> float:
        starts = [each.start_at for each in self._places if each.member is None and not each.is_done]
        until_s = min(starts, default=float("inf")) - time.monotonic()
        return self._look_s if self._asked else min(self._look_s, max(0.01, until_s))

    def _members(self) -> list[MemberProcess]:
        return [each.member for each in self._places if each.member is not None] + self._rolling.members()

    def _is_wanted(self) -> bool:
        return not self._asked and not all(place.is_done for place in self._places)

    def _result(self) -> int:
        if self._hopeless is None:
            return self._worst
        refused = self._restarts.failed_starts < self._restarts.patience.starts_max
        raise WorkersNotStarted(
            "the worker refuses to start"
            if refused
            else "the worker processes died at their start again and again",
            "its error stands above",
            "correct what it names, then start the worker again",
            exit_code=self._hopeless,
        )

    def _signalled(self, number: int) -> None:
        """In a signal's handler: only a note is made."""
        if number == signal.SIGHUP:
            self._roll_asked = True
        elif number != signal.SIGCHLD:
            self._asked += 1


def _reap_strangers(ours: set[int]) -> None:
    """As the first process of a container this one inherits what its grandchildren leave behind."""
    if not hasattr(os, "waitid"):
        return  # no containers there
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in ours:
            return  # ours are asked for one by one
        os.waitpid(found.si_pid, os.WNOHANG)


class _Signals:
    """Notes signals and wakes the loop. A terminal that closes means the end; else SIGHUP means a rolling restart."""

    def __init__(self, waker: socket.socket, note: Callable[[int], None]) -> None:
        self._waker = waker
        self._note = note
        self._former: dict[int, Any] = {}

    def __enter__(self) -> None:
        self._waker.setblocking(False)
        self._former_fd = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            # `nohup` and the like have said that it is to be ignored.
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._former[number] = signal.signal(number, self._caught)

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._former_fd)
        for number, former in self._former.items():
            signal.signal(number, former)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        self._note(signal.SIGTERM if number == signal.SIGHUP and _at_terminal() else number)


def _at_terminal() -> bool:
    try:
        return os.isatty(2) or os.isatty(0)
    except OSError:
        return False
