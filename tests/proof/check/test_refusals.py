"""What a check cannot judge it refuses, with a reason; what leaves the process undeclared it names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencerow.cli.main import run
from fencerow_proof.check import Fault, check, check_handler, scratch
from fencerow_proof.errors import (
    CheckArguments,
    CheckNeedsMore,
    CheckStuck,
    NothingRecorded,
    NothingToCheck,
    ScratchNotEmpty,
)
from tests.proof.check.faults import place_of

ODD = "tests.proof.check.handlers.odd"


def check_odd(job: str, args: dict[str, Any] | None = None, **more: Any) -> Any:
    given = {"order": 1} if args is None else args
    return check_handler(f"{ODD}:{job}", given, **{"engine": "sqlite", "orders": 4, **more})


@pytest.mark.parametrize(
    ("job", "kind", "told"),
    [
        ("nowhere", NothingToCheck, "idle"),
        ("many", NothingToCheck, "batch"),
        ("idle", NothingRecorded, "nothing"),
        ("without_table", CheckNeedsMore, "no such table: nowhere"),
    ],
)
def test_a_handler_of_which_nothing_can_be_said_is_refused(
    job: str, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind) as refused:
        check_odd(job)

    assert told in str(refused.value)


def test_the_line_that_needs_more_is_named() -> None:
    with pytest.raises(CheckNeedsMore) as refused:
        check_odd("without_table")

    assert place_of("odd", "fault: without_table") in str(refused.value)


def test_arguments_that_do_not_fit_are_refused_before_anything_runs() -> None:
    with pytest.raises(CheckArguments):
        check_odd("idle", {"orders": 1})


def test_a_run_without_an_end_is_given_up() -> None:
    with pytest.raises(CheckStuck) as stuck:
        check_odd("waits_for_ever", run_s=1.0)

    assert "CREATE TABLE once" in str(stuck.value)
    # In full width, however long the path of this Python is; and of this Python alone.
    said = subprocess.run(["ps", "-ewwo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    ours = [line for line in said.splitlines() if sys.executable in line and "check._warm" in line]
    parents = dict(line.split()[:2] for line in ours)
    me = str(os.getpid())  # asked here: tests may run in a fork of who imported them
    (mine,) = [
        pid for pid, parent in parents.items() if parent == me
    ]  # of the starters it forked none is left
    assert not [pid for pid, parent in parents.items() if parent in (mine, "1")]


def test_a_database_with_tables_is_never_used(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE full_one")
    full = empty_url.replace("/empty?", "/full_one?")
    with psycopg.connect(full, autocommit=True) as connection:
        connection.execute("CREATE TABLE precious (n int)")

    with pytest.raises(ScratchNotEmpty):
        check_handler(f"{ODD}:idle", {"order": 1}, url=full)


@pytest.mark.parametrize(
    ("job", "fault"),
    [
        ("calls_out", Fault.UNDECLARED_SOCKET),
        ("starts_a_program", Fault.UNDECLARED_PROCESS),
        ("calls_in_a_fake", Fault.CALLED_TWICE),
    ],
)
def test_what_leaves_the_process_is_named_with_its_line(job: str, fault: Fault) -> None:
    report = check_odd(job)

    assert [finding.place.rpartition("/")[2] for finding in report.found(fault)] == [
        place_of("odd", f"fault: {job}")
    ]
    assert not report.ok


def test_the_command_prints_a_document_and_its_code_says_whether_all_is_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "tests.proof.check.handlers.on_sqlite3"
    more = ["--setup", f"{name}:tables", "--engine", "sqlite", "--orders", "4", "--args", '{"order": 1}']

    assert run(["check", f"{name}:insert_without_key", "--json", *more]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"] and report["findings"][0]["fault"] == "inserted-twice"
    assert run(["check", f"{name}:row_written", *more, "--orders", "200"]) == 0
    assert "idempotent re-run: yes" in capsys.readouterr().out
    assert run(["check", f"{name}:nowhere", *more]) == 2


def test_nothing_is_left_behind(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def remove(folder: Path) -> None:
        made.append(folder)
        scratch.remove_folder(folder)

    place = sqlite_path.parent  # short enough for a socket, and of this test alone
    monkeypatch.setattr(scratch, "MEMORY", place)
    monkeypatch.setattr(check, "remove_folder", remove)

    check_odd("calls_in_a_fake")

    assert [folder.parent for folder in made] == [place]
    assert list(place.iterdir()) == []
