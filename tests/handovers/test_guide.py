"""docs/guide/handover.md does what it says: its code and its commands, from the page itself."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fencerow import App
from fencerow.handovers import Receiver
from fencerow.handovers.checks import LATE_S
from fencerow.handovers.client import LEASE_S
from fencerow.handovers.terms import HOLD_S
from fencerow.handovers.wing import CONFIRMED_KEPT_S
from fencerow.testing import drain
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.house.tree import ROOT

cli = command_line.cli  # a fixture

PAGE = (ROOT / "docs" / "guide" / "handover.md").read_text("utf-8")
DECLARING, TAKING, STORING = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"`fencerow (handovers[^`]*)`", PAGE)


def run(text: str, names: dict[str, object]) -> None:
    exec(compile(text, "handover.md", "exec"), names)  # noqa: S102


def test_answers_come_in_the_order_of_the_questions(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    with App(url) as app:
        names: dict[str, object] = {"app": app}
        app.migrate()
        run(DECLARING, names)
        ask = names["answer"]
        asked = [ask.submit("town", each) for each in ("first", "second")]  # type: ignore[attr-defined]
        hidden = ask.using(handover=False).submit("town", "hidden")  # type: ignore[attr-defined]
        assert cli(*shlex.split("handovers"), "--url", url).out.count("town") == 2
        app.client.cancel(asked[0].id)
        drain(app)

        run(TAKING, names)
        run(TAKING, names)

        assert capsys.readouterr().out == "town cancelled None\ntown SECOND\n"
        bot = names["bot"]
        assert isinstance(bot, Receiver)
        assert [bot.confirm(each.id).replay for each in asked] == [True, True]
        assert hidden.id not in cli("handovers", "--url", url).out


def test_a_write_beside_the_confirmation_happens_once(tmp_path: Path, cli: Cli) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    with App(url) as app:
        app.migrate()
        names: dict[str, object] = {"app": app}
        run(DECLARING, names)
        handle = names["answer"].submit("town", "first")  # type: ignore[attr-defined]
        drain(app)
        bot = app.client.handovers("bot")
        run(STORING, names | {"bot": bot})
        names["bot"] = bot
        run(STORING, names)
        (taken,) = bot.take()
        with app.engine.session() as session:
            session.connection.execute("CREATE TABLE answers (job TEXT, text TEXT)")
        with app.engine.session() as session:
            names["store"](taken, session)  # type: ignore[operator]

        with app.engine.session() as session:
            rows = session.connection.execute("SELECT job, text FROM answers").fetchall()
        assert [tuple(row) for row in rows] == [(handle.id, "FIRST")]
        assert bot.confirm(handle.id).replay
        line = [each.replace("ID", handle.id) for each in COMMANDS]
        assert len(line) == 3
        assert [cli(*shlex.split(each), "--url", url).code for each in line] == [0, 0, 0]


def test_the_times_that_the_page_names_are_those_that_are_set() -> None:
    assert f"({HOLD_S:g} s unless you say so)" in PAGE
    assert f"`take(lease_s={LEASE_S:g})`" in PAGE
    assert CONFIRMED_KEPT_S == 86_400.0 and "a day later" in PAGE
    assert LATE_S == 3600.0 and "more than\nan hour" in PAGE
