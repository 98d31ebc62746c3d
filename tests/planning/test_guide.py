"""docs/guide/capacity.md does what it says: its plan, its commands with what they print, and its code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.house.tree import ROOT

cli = command_line.cli  # a fixture

PAGE = (ROOT / "docs" / "guide" / "capacity.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_plan_comes_to_what_the_page_shows(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (plan,) = (text for kind, text in BLOCKS if kind == "toml")
    Path("plan.toml").write_text(plan, "utf-8")

    kinds = [kind for kind, _ in BLOCKS]
    (first,) = (number for number, kind in enumerate(kinds) if kinds[number : number + 2] == ["bash", ""])
    done = cli(*shlex.split(BLOCKS[first][1])[1:])

    assert (done.code, done.err) == (0, "")
    assert done.out == BLOCKS[first + 1][1]
    assert max(map(len, done.out.splitlines())) <= 80


def test_its_code_runs() -> None:
    (code,) = (text for kind, text in BLOCKS if kind == "python")

    exec(compile(code, "capacity.md", "exec"), {})  # noqa: S102


def test_it_names_every_field() -> None:
    from fencerow.planning import written

    tables = (written.WrittenKeys, written.WrittenJob, written.WrittenLimit, written.WrittenWorkers)
    fields = {name for table in (*tables, written.WrittenOutage) for name in table.__struct_fields__}

    assert {name for name in fields if not re.search(rf"`[^`]*\b{name}\b[^`]*`", PAGE)} == set()
