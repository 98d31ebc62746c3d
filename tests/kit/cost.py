"""What each folder of tests costs, in seconds of a processor: printed at the end of a run with `--cost FILE`, and kept.

`--cost-of-each FILE` adds a line for each test to FILE, "seconds name", as soon as it is over: it is what a thinning
begins with. What modules and processes share is counted to the test that made it.

Counted is what the processes of the run used and all that they started, servers too. Who waits costs nothing. Only
Linux tells what a server uses while it runs.
"""

from __future__ import annotations

import json
import os
import resource
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

SHOWN = 15  # of the folders, the costliest
LEVELS = 3  # tests/core/store, tests/cli
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
Costs = defaultdict[str, float]
gathered = pytest.StashKey[Costs]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cost", type=Path, help="write what each folder of tests costs to this file")
    parser.addoption("--cost-of-each", type=Path, help="add what each test costs to this file")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[gathered] = defaultdict(float)
    if not config.getoption("numprocesses", None):  # else the processes that play the tests do it
        config.pluginmanager.register(Meter(config), "costs")
        if (file := config.getoption("--cost-of-each")) is not None:
            config.pluginmanager.register(EachMeter(file))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    costs = sorted(config.stash[gathered].items(), key=lambda each: each[1], reverse=True)
    file: Path | None = config.getoption("--cost")
    if file is None or not costs:
        return
    terminalreporter.section("seconds of a processor, by folder")
    for folder, seconds in costs[:SHOWN]:
        terminalreporter.write_line(f"{seconds:7.1f}  {folder}")
    terminalreporter.write_line(f"{sum(seconds for _, seconds in costs):7.1f}  in all")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({folder: round(seconds, 1) for folder, seconds in costs}, indent=1))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A process of the run has ended: take what it counted. One that crashed could not tell."""
    told: dict[str, float] = getattr(node, "workeroutput", {}).get("cost", {})
    for folder, seconds in told.items():
        node.config.stash[gathered][folder] += seconds


class Meter:
    """Counts in a process that plays tests. It looks when the folder changes: a look costs more than some tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._costs: Costs = config.stash[gathered]
        self._folder = "(collection)"
        self._counted_s = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        folder = "/".join(item.nodeid.partition("::")[0].split("/")[:-1][:LEVELS])
        if folder != self._folder:
            self.settle(folder)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        told = getattr(session.config, "workeroutput", None)
        if told is not None:
            told["cost"] = self.told()
        else:
            self.settle("")

    def settle(self, following: str) -> None:
        """What was used since the last look goes to the folder that was played; then `following` is."""
        now_s = used_s()
        self._costs[self._folder] += now_s - self._counted_s
        self._folder, self._counted_s = following, now_s

    def told(self) -> dict[str, float]:
        """All that was counted here."""
        self.settle("")
        return dict(self._costs)

    def take(self, told: dict[str, float]) -> None:
        """What another process has counted."""
        for folder, seconds in told.items():
            self._costs[folder] += seconds

    def begin_anew(self) -> None:
        """In a fork, which has used nothing yet: what was counted before it, its parent tells."""
        self._costs.clear()
        self._folder, self._counted_s = "(collection)", used_s()

    def forget(self) -> None:
        """What was used since the last look was counted by those who used it."""
        self._counted_s = used_s()


class EachMeter:
    """Looks before and after each test. Several processes add to one file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before_s = used_s()
        try:
            return (yield)
        finally:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(f"{used_s() - before_s:.3f} {item.nodeid}\n")


def used_s() -> float:
    """What this process, those that it awaited, and those that live below it have used."""
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in own) + sum(map(_used_s, _below(os.getpid())))


def _below(pid: int) -> Iterator[int]:
    for task in _threads(pid):
        for child in map(int, _read(task / "children").split()):
            yield child
            yield from _below(child)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []  # it has ended: between two looks, or while we read


def _used_s(pid: int) -> float:
    """With those that it awaited: fields 14 to 17 of its line, counted behind its name, which may hold spaces."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS_PER_S


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")  # a name that is cut off may end within a letter
    except OSError:
        return ""  # it has ended
