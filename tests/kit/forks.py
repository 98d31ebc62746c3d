"""`--forks N`: this process collects all tests, and N forks of it play them, a file each at a time.

The processes of xdist (`-n N`, which is heeded where both are given) import and collect ten thousand tests each: eleven
seconds of a processor, three times over. A fork has them already. Nothing of a server or a database is made before;
that is each fork's own. One that dies is told as a failure of the test that it played, and another one plays the rest
of its file.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import selectors
import socket
import sys
import traceback
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:  # pytest imports its plugins by itself
    from tests.kit.cost import Meter

LOOK_S = 1.0  # how often it is asked whether a fork has died whose children hold its line open
CRASHED = "the process that played it ended"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="collect once, and play in so many forks")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    count: int = session.config.getoption("--forks")
    others_play = session.config.getoption("numprocesses", None) or hasattr(session.config, "workerinput")
    if not count or others_play or session.config.getoption("--collect-only") or session.testsfailed:
        return None  # as without forks
    Parent(session).play(count)
    return True


class Line:
    """One end of what joins a fork with its parent; a message is a line of JSON."""

    def __init__(self, end: socket.socket) -> None:
        self.end, self._rest = end, b""

    def say(self, **message: object) -> None:
        self.end.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> list[dict[str, Any]] | None:
        """All that has come, which may be half a message. None: the other side is gone."""
        try:
            came = self.end.recv(1 << 16)
        except OSError:
            return None
        *whole, self._rest = (self._rest + came).split(b"\n")
        return [json.loads(each) for each in whole] if came else None


@dataclass
class Fork:
    pid: int
    line: Line
    left: list[int] = field(default_factory=list)  # tests that it was given and has not ended
    is_done: bool = False


class Parent:
    """Gives the files away, and tells pytest what the forks say."""

    def __init__(self, session: pytest.Session) -> None:
        self._session, self._config, self._items = session, session.config, session.items
        numbers = range(len(self._items))
        self._files = deque(
            list(of_one) for _, of_one in groupby(numbers, key=lambda at: self._items[at].path)
        )
        self._forks: dict[int, Fork] = {}
        self._made = 0
        self._lines = selectors.DefaultSelector()

    def play(self, count: int) -> None:
        meter = meter_of(self._config)
        if meter is not None:
            meter.settle("(forks)")
        for _ in range(min(count, len(self._files))):
            self._fork()
        while self._forks:
            heard = self._lines.select(LOOK_S)
            for key, _ in heard:
                self._hear(self._forks[key.data])
            if not heard:
                self._look()
        if meter is not None:
            meter.forget()

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        self._made += 1
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for each in self._forks.values():
                each.line.end.close()
            Child(self._session, Line(theirs)).live(self._made)
        theirs.close()
        self._forks[pid] = Fork(pid, Line(ours))
        self._lines.register(ours, selectors.EVENT_READ, pid)

    def _hear(self, fork: Fork) -> None:
        said = fork.line.hear()
        for message in said or ():
            self._take(fork, message)
        if said is None:
            os.waitpid(fork.pid, 0)
            self._drop(fork)

    def _take(self, fork: Fork, message: dict[str, Any]) -> None:
        hook, meter = self._config.hook, meter_of(self._config)
        match message:
            case {"wants": _}:
                stops = self._session.shouldfail or self._session.shouldstop
                given = [] if stops or not self._files else self._files.popleft()
                fork.left += given
                fork.line.say(play=given)
            case {"report": data}:
                report = hook.pytest_report_from_serializable(config=self._config, data=data)
                if isinstance(report.longrepr, list):  # why it was skipped: JSON has no tuples
                    report.longrepr = tuple(report.longrepr)
                hook.pytest_runtest_logreport(report=report)
            case {"ended": number}:
                fork.left.remove(number)
            case {"done": costs}:
                fork.is_done = True
                if meter is not None:
                    meter.take(costs)
            case _:
                raise AssertionError(message)

    def _look(self) -> None:
        """What a fork has started may hold its line when it has died."""
        for fork in list(self._forks.values()):
            if os.waitpid(fork.pid, os.WNOHANG)[0]:
                self._drop(fork)

    def _drop(self, fork: Fork) -> None:
        self._lines.unregister(fork.line.end)
        fork.line.end.close()
        del self._forks[fork.pid]
        if fork.is_done:
            return
        if fork.left:
            self._tell_crash(self._items[fork.left[0]])
            if rest := fork.left[1:]:
                self._files.appendleft(rest)
        if self._files:
            self._fork()

    def _tell_crash(self, item: pytest.Item) -> None:
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", CRASHED, "call")
        self._config.hook.pytest_runtest_logreport(report=report)


class Child:
    """Plays what it is given, and is never heard of by the tests' own code again."""

    def __init__(self, session: pytest.Session, line: Line) -> None:
        self._session, self._config, self._line = session, session.config, line
        self._earlier: object = None

    def live(self, number: int) -> NoReturn:
        code = 1
        try:
            self._settle_in(number)
            self._play()
            meter = meter_of(self._config)
            self._line.say(done=meter.told() if meter else {})
            code = 0
        except BaseException:  # not into the parent's code, which lies below us on the stack
            traceback.print_exc(file=sys.__stderr__)
        leave(code)

    def _settle_in(self, number: int) -> None:
        """A console, a capture and a folder of its own, and a meter that begins with nothing."""
        plugins = self._config.pluginmanager
        capture: Any = plugins.getplugin("capturemanager")
        capture.suspend_global_capture()
        # Not closed: some module may have taken its sys.stderr at its import.
        self._earlier = capture._global_capturing
        capture._global_capturing = None
        capture.start_global_capturing()
        terminal: Any = plugins.getplugin("terminalreporter")
        terminal._tw._file = io.StringIO()  # what is said, the parent says
        if plugins.has_plugin("verdicts"):
            plugins.unregister(name="verdicts")
        plugins.register(Told(self._config, self._line))
        folders: Any = self._config._tmp_path_factory  # type: ignore[attr-defined]
        folders._basetemp = folders.getbasetemp() / f"fork-{number}"
        folders._basetemp.mkdir(mode=0o700)
        meter = meter_of(self._config)
        if meter is not None:
            meter.begin_anew()

    def _play(self) -> None:
        """The next file is asked for before the last test of this one: only then is it known which fixtures stay."""
        given = after = self._next()
        while given:
            for place, number in enumerate(given):
                following = given[place + 1 :]
                after = following or self._next()
                item, then = self._session.items[number], self._session.items[after[0]] if after else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=then)
                self._line.say(ended=number)
            given = after

    def _next(self) -> list[int]:
        self._line.say(wants="a file")
        heard = self._line.hear()
        while heard == []:
            heard = self._line.hear()
        if heard is None:
            leave(1)  # nobody listens any more
        return list(heard[0]["play"])


class Told:
    """Hands the report of each phase to the parent."""

    def __init__(self, config: pytest.Config, line: Line) -> None:
        self._config, self._line = config, line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.say(report=data)


def meter_of(config: pytest.Config) -> Meter | None:
    found: Meter | None = config.pluginmanager.get_plugin("costs")
    return found


def leave(code: int) -> NoReturn:
    """As a process ends, but for the stack of the parent below."""
    try:
        atexit._run_exitfuncs()
    finally:
        os._exit(code)
