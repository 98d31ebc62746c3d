"""What the demo shows in a window of 80 columns and 24 lines."""

from __future__ import annotations

import io
import re
from typing import Any

import msgspec
import pytest
from rich.console import Console

from fencerow.core.model.job import Happening, JobRecord
from fencerow.core.model.state import State
from fencerow.demo.model import Extraction
from fencerow.demo.show import samples
from fencerow.demo.view import TerminalView

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOLDER = "01a22176-dbea-7000-8000-000000000001"
WORKERS = {HOLDER: "worker-2 dead"}


def record(state: State, **changes: Any) -> JobRecord:
    fields: dict[str, Any] = {
        "id": "j", "queue": "q", "name": "n", "priority": 0, "suspect": False, "run_at_us": 0, "attempt": 2,
        "failures": 0, "crashes": 0, "snoozes": 0, "attempts_max": 3, "crashes_max": 3, "snoozes_max": 3,
        "submitted_at_us": 0, "progress": 100.0, "progress_note": "page 12 of 12",
    }  # fmt: skip
    return JobRecord(**{**fields, "state": state, **changes})


@pytest.fixture
def view() -> TerminalView:
    made = TerminalView()
    made._console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    return made


def lines(view: TerminalView) -> list[str]:
    file = view._console.file
    assert isinstance(file, io.StringIO)
    return CONTROL.sub("", file.getvalue()).replace("\r", "\n").splitlines()


def test_a_document_is_a_line_and_no_markup_is_shown(view: TerminalView) -> None:
    names = [path.name for path in samples()]
    rows = [(name, record(State.RUNNING, holder=HOLDER)) for name in names]

    with view.live():
        view.show(rows, WORKERS)
        view.say("Killed worker-2: its lease runs out in at most 3 s; then the other takes over.")
        view.show(rows, WORKERS)

    shown = [line for line in lines(view) if "running" in line]
    assert shown and not any("[" in line for line in shown)
    assert all(line.rstrip().endswith("worker-2 dead") for line in shown), "in one line, and not cut"
    assert max(len(line) for line in lines(view)) <= 80


def test_what_stands_at_the_end_fits_the_window(view: TerminalView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda: "")
    result = msgspec.to_builtins(Extraction(pages=12, words=5_607, fields=[], sizes=[]))
    rows = [(path.name, record(State.SUCCEEDED, result=result)) for path in samples()]
    happened = [Happening(at_us=each, kind="claimed", attempt=1, actor=HOLDER) for each in range(5)]

    view.results(rows)
    view.timeline("annual_report.pdf", happened, WORKERS)
    view.conclude("12 jobs: 12 succeeded; every job ended exactly once.")
    view.wait_for_user()

    shown = lines(view)
    assert len(shown) < 24
    assert "every job ended exactly once" in shown[-2] and "Press Enter" in shown[-1]
    assert HOLDER not in "".join(shown)
