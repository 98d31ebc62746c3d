"""A supervisor starts processes again, passes orders on once, gives up what is hopeless, and leaves nobody behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencerow.db.errors import exits
from tests.kit.pace import PATIENCE_S, slower
from tests.kit.stopping import signals_heeded

QUICK = {"first_s": 0.01, "most_s": 0.05, "jitter": 0.0}


class Parent:
    """A supervisor under test, and what its processes say: lines of number, what happened, process id."""

    def __init__(self, count: int, folder: Path, **patience: float) -> None:
        self.folder = folder
        self.lines: list[tuple[int, str, int]] = []
        given = [str(count), str(folder), json.dumps(QUICK | patience), str(os.getpid())]
        with (folder / "log").open("wb") as log, signals_heeded():
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.supervisor.parent", *given],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def until(self, what: str, times: int = 1) -> list[int]:
        """Read what its processes say until this has been said so often in all; returns the process ids."""
        assert self.process.stdout is not None
        while len(found := [pid for _, said, pid in self.lines if said == what]) < times:
            line = self.process.stdout.readline().decode().split()
            assert line, f"{what} was never said {times} times: {self.lines}\n{self.log}"
            self.lines.append((int(line[0]), line[1], int(line[2])))
        return found

    def until_logged(self, what: str) -> None:
        """Wait until the parent itself has said this: it hears of its processes later than we do."""
        deadline = time.monotonic() + PATIENCE_S
        while what not in self.log:
            assert time.monotonic() < deadline, self.log
            time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Its exit code, when all of its processes have ended, too: each holds the other end of the pipe."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            number, said, pid = line.decode().split()
            self.lines.append((int(number), said, int(pid)))
        return self.process.wait(PATIENCE_S)

    def said(self, what: str) -> list[int]:
        return sorted(number for number, said, _ in self.lines if said == what)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


Start = Callable[..., Parent]


def behave(folder: Path, number: int | None = None, **how: Any) -> None:
    (folder / ("do" if number is None else f"do-{number}")).write_text(json.dumps(how))


def test_a_process_that_died_is_started_again_and_all_leave_in_order(start: Start) -> None:
    parent = start(2)
    first, second = parent.until("ready", 2)

    os.kill(second, signal.SIGKILL)
    (third,) = set(parent.until("ready", 3)) - {first, second}
    parent.until_logged("2 processes are ready: 20 slots (10 + 10), at most 28 connections")
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert {pid for _, said, pid in parent.lines if said == "leaves"} == {first, third}
    assert "process 2 was killed by SIGKILL" in parent.log


def test_the_second_signal_is_passed_on_as_hurry(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, lingers=True)
    parent = start(2)
    parent.until("ready", 2)

    parent.signal(signal.SIGTERM)
    parent.until("leaves", 2)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert parent.said("hurries") == [1, 2]


def test_a_signal_to_the_whole_group_reaches_the_supervisor_alone(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, lingers=True)
    parent = start(2)
    parent.until("ready", 2)

    os.killpg(parent.process.pid, signal.SIGINT)  # what a terminal does at Ctrl-C
    parent.until("leaves", 2)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert parent.said("SIGINT") == [] and parent.said("hurries") == [1, 2]


def test_processes_whose_supervisor_was_killed_see_the_end_of_their_lifelines(start: Start) -> None:
    parent = start(3)
    parent.until("ready", 3)

    parent.process.kill()

    assert parent.end() == -signal.SIGKILL
    assert parent.said("gone") == [1, 2, 3]


def test_processes_that_die_at_their_start_are_given_up_after_a_few_tries(
    start: Start, tmp_path: Path
) -> None:
    behave(tmp_path, exit=exits.UNEXPECTED)
    parent = start(4, starts_max=3)

    assert parent.end() == exits.UNEXPECTED
    assert parent.said("refuses") == [1, 1, 1], "the others were not even tried"
    assert "FR-608" in parent.log


@pytest.mark.parametrize("code", [exits.REFUSED, exits.SCHEMA, exits.UNAVAILABLE])
def test_a_refusal_is_not_tried_again(start: Start, tmp_path: Path, code: int) -> None:
    behave(tmp_path, exit=code)
    parent = start(4)

    assert parent.end() == code
    assert parent.said("refuses") == [1]


def test_one_that_cannot_start_takes_nobody_down_with_it(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, 2, exit=exits.REFUSED)
    parent = start(2, starts_max=2)
    parent.until("refuses", 4)

    assert parent.process.poll() is None
    (tmp_path / "do-2").unlink()
    parent.until("ready", 2)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK


def test_the_exit_code_is_that_of_the_worst_process(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, 2, code=exits.BLOCKED)
    parent = start(3)
    parent.until("ready", 3)

    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.BLOCKED


def test_one_that_left_in_order_is_not_started_again(start: Start, tmp_path: Path) -> None:
    """As at the end of `--once` and `--drain`, or when an operator drains this worker."""
    behave(tmp_path, last={"phase": "ended", "is_done": True}, leave=exits.OK)
    parent = start(3)

    assert parent.end() == exits.OK
    assert parent.said("ready") == [1, 2, 3]


def test_the_others_start_though_the_first_was_gone_before_anybody_saw_it_ready(
    start: Start, tmp_path: Path
) -> None:
    done = {"phase": "ended", "is_done": True}
    behave(tmp_path, vitals={"phase": "starting"}, last=done, leave=exits.OK)
    parent = start(3)

    assert parent.end() == exits.OK
    assert parent.said("up") == [1, 2, 3]


def test_a_rolling_restart_replaces_one_after_the_other(start: Start) -> None:
    parent = start(3)
    old = set(parent.until("ready", 3))

    parent.signal(signal.SIGHUP)
    parent.until("leaves", 3)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    rolled = [(said, number) for number, said, _ in parent.lines if said in ("up", "leaves")][3:9]
    assert rolled == [each for number in (1, 2, 3) for each in (("up", number), ("leaves", number))]
    assert {pid for _, said, pid in parent.lines if said == "leaves"} > old


def test_a_rolling_restart_ends_with_the_first_new_process_that_does_not_start(
    start: Start, tmp_path: Path
) -> None:
    parent = start(2)
    old = set(parent.until("ready", 2))

    behave(tmp_path, exit=exits.REFUSED)
    parent.signal(signal.SIGHUP)
    parent.until("refuses")
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert parent.said("refuses") == [1]
    left = {pid for _, said, pid in parent.lines if said == "leaves"}
    assert left == old, "the old ones went on until then"


def test_a_process_that_cannot_help_itself_is_killed_and_replaced(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, 2, vitals={"faults": ["the keeper has made no turn for 99 s"]})
    parent = start(2, unwell_s=0.1)
    _, ill = parent.until("ready", 2)
    (tmp_path / "do-2").unlink()

    parent.until("ready", 3)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert ill not in {pid for _, said, pid in parent.lines if said == "leaves"}
    assert "process 2 was killed: the keeper has made no turn for 99 s" in parent.log


def test_a_process_that_says_nothing_is_killed_and_replaced(start: Start) -> None:
    parent = start(2, silent_s=slower(5.0))
    _, mute = parent.until("ready", 2)

    os.kill(mute, signal.SIGSTOP)
    parent.until("ready", 3)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert "it has said nothing for" in parent.log


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process")
def test_what_its_processes_leave_behind_is_buried(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, 1, orphan=True, leave=1)
    parent = start(1)
    (orphan,) = parent.until("orphan")
    (tmp_path / "do-1").unlink()
    parent.until("ready", 2)

    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{orphan}").exists():
        assert time.monotonic() < deadline, "it is a zombie"
        time.sleep(0.01)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
