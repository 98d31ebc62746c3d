"""docs/guide/exclusive.md does what it says: its code and its commands, from the page itself."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fencerow import App
from fencerow.config import Config
from fencerow.turns import handing
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.house.tree import ROOT

cli = command_line.cli  # a fixture

PAGE = (ROOT / "docs" / "guide" / "exclusive.md").read_text("utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")
DECLARING, LOOKING = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
OPTIONS = re.findall(r"^\| `(exclusive_at_once=3|strict=True)` \|", PAGE, re.MULTILINE)
COMMANDS = re.findall(r"`fencerow (exclusive[^`]*)`", PAGE)


def run(text: str, names: dict[str, object]) -> None:
    exec(compile(text, "exclusive.md", "exec"), names)  # noqa: S102


def test_jobs_of_a_key_run_one_at_a_time_and_the_program_and_the_commands_show_who_waits(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    with App(url) as app:
        names: dict[str, object] = {"app": app, "client": app.client}
        app.migrate()
        run(DECLARING, names)
        sync = names["sync"]
        first, second, other = (sync.submit(account) for account in (7, 7, 8))  # type: ignore[attr-defined]
        app.engine.run(handing.hand_over())
        states = [app.client.get(each.id).state.value for each in (first, second, other)]
        assert states == ["queued", "waiting", "queued"]

        run(LOOKING, names)
        assert capsys.readouterr().out == f"['{first.id}'] 1\n"

        assert len(COMMANDS) == 2
        shown = [cli(*shlex.split(line), "--url", url) for line in COMMANDS]
        assert [each.code for each in shown] == [0, 0]
        assert "account-7" in shown[0].out and "account-8" in shown[0].out
        assert first.id in shown[1].out and second.id in shown[1].out

        assert OPTIONS == ["exclusive_at_once=3", "strict=True"]
        given = eval(f"dict(exclusive='k', {', '.join(OPTIONS)})")  # noqa: S307
        declared = app.job(name="declared", **given)(lambda: None).submit()
        job = app.client.get(declared.id)
        assert (job.exclusive_at_once, job.strict) == (3, True)


def test_the_time_that_the_page_names_is_the_one_that_is_set() -> None:
    assert f"`turn_claim_s` ({Config().turn_claim_s:g} s)" in PAGE


def test_a_stuck_key_is_shown_as_operations_say(tmp_path: Path, cli: Cli) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    (text,) = re.findall(r"^## A key that does not move\n(.+?)^## ", OPERATIONS, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^fencerow ([a-z]+)", text, re.MULTILINE)
    assert commands == ["exclusive", "exclusive", "why", "jobs", "doctor"]
    with App(url) as app:
        app.migrate()
        job = app.job(name="sync", exclusive="account-7")(lambda: None)
        first, second = job.submit(), job.submit()
        app.engine.run(handing.hand_over())
        shown = cli("exclusive", "show", "account-7", "--url", url).out
        for said in ("has a turn", "to be claimed", "1 of 1 taken"):
            assert said in text and said in shown
        assert first.id in cli("why", second.id, "--url", url).out
        assert cli("jobs", "cancel", first.id, "--yes", "--url", url).code == 0
        app.engine.run(handing.hand_over())
        assert app.client.get(second.id).state.value == "queued"
