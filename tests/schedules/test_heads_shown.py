"""A schedule with entities as a person looks at it: its own row fires for none, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import conftest as command_line
from tests.cli.conftest import Cli

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

APP = """
from fencerow import App
from fencerow.schedules import Entity

app = App()


@app.job
async def digest(user: str) -> None: ...


def users() -> list[str | Entity]:
    return ["ada", Entity("eve", when={"cron": "0 6 * * *", "tz": "Asia/Tokyo"})]


app.schedule(digest, "nightly", cron="0 6 * * *", entities=users)
"""


def test_a_head_tells_of_its_entities(
    cli: Cli, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    module = f"heads_{abs(hash(request.node.name))}"
    (tmp_path / f"{module}.py").write_text(APP, "utf-8")
    monkeypatch.chdir(tmp_path)
    cli("schedules", "reconcile", "-A", f"{module}:app")
    assert "2 made" in cli("schedules", "refresh", "nightly", "-A", f"{module}:app").out

    head = cli("schedules", "next", "nightly").out.splitlines()
    assert head[0] == "the next fire of each of its entities, the soonest 2 of 2"
    assert sorted(line.partition(":")[0] for line in head[1:]) == ["ada", "eve"]
    shown = cli("schedules", "show", "nightly").out
    assert "unless an entity has other times" in shown and "of its entities the first" in shown

    (line,) = cli("schedules", "next", "nightly/eve", "-n", "1").out.splitlines()
    assert line.endswith("06:00 Asia/Tokyo")
    cli("schedules", "pause", "nightly/eve", "--reason", "away")
    fires = cli("schedules", "next", "nightly", "--json").json
    assert [each["entity"] for each in fires] == ["ada"]
    assert cli("schedules", "resume", "nightly").out.splitlines()[-1].startswith("1 entity stays paused")
