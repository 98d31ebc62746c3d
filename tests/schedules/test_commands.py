"""`fencerow schedules`: what people see and change, and what programs read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencerow.core.store import store
from fencerow.db.sqlite_connection import HostClock
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

DAY_US = 86_400_000_000
APP = """
from fencerow import App

app = App()


@app.job
async def clean(days: int = 30) -> None: ...


app.schedule(clean, "nightly", cron="0 3 * * *", tz="Europe/Berlin")
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """An application of its own for each test, in the working directory."""
    name = f"shop_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(APP, "utf-8")
    monkeypatch.chdir(tmp_path)
    return f"{name}:app"


@pytest.fixture
def midday(engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of this database shows the next noon, UTC: far from every window that a test names."""
    missing_us = (DAY_US // 2 - engine.run(store.clock())) % DAY_US
    if engine.traits.brings_clock:
        # The command opens the file with an engine of its own.
        monkeypatch.setattr(HostClock, "offset_us", HostClock.offset_us + missing_us)
    else:
        clock.advance(missing_us / 1e6)


@pytest.mark.usefixtures("midday")
def test_a_schedule_is_set_looked_at_and_removed(cli: Cli, url: str, engine: AnyEngine, shop: str) -> None:
    made = cli(
        "schedules", "set", "often", "clean", "--args", '{"days": 7}', "--rate", "4", "-A", shop, "--json"
    ).json
    changed = cli("schedules", "set", "often", "--interval", "900", "--window", "22:00-02:00", "--json").json

    assert (made["when"]["rate"], made["args"], made["origin"]) == (4, {"days": 7}, "person")
    assert (changed["version"], changed["args"], changed["windows"]) == (
        2,
        {"days": 7},
        ["daily 22:00-02:00 UTC"],
    )
    assert "often" in cli("schedules").out
    assert [each["name"] for each in cli("schedules", "list", "--json").json] == ["often"]
    fires = cli("schedules", "next", "often", "-n", "100", "--json").json
    kept = [each for each in fires if each["starts"] is not None]
    assert len(fires) == 100 and {each["starts"] == each["fires"] for each in kept} == {True}
    assert len(fires) - len(kept) == 16, "four hours of the 25 that these are"
    assert "in a maintenance window, makes no job" in cli("schedules", "next", "often", "-n", "100").out
    cli("schedules", "set", "often", "--in-window", "defer")
    (end,) = {
        each["starts"][11:16]
        for each in cli("schedules", "next", "often", "-n", "100", "--json").json
        if each["starts"] != each["fires"]
    }
    assert end == "02:00"
    assert "maintenance window" in cli("schedules", "explain", "often").out
    assert (
        "900 s" in cli("schedules", "show", "often").out or "15 min" in cli("schedules", "show", "often").out
    )
    assert cli("schedules", "remove", "often", "--json").json["removed"] == 1
    assert "no schedule is known" in cli("schedules").out


def test_it_is_paused_resumed_and_run(cli: Cli, url: str, engine: AnyEngine, shop: str) -> None:
    cli("schedules", "set", "often", "clean", "--interval", "900", "-A", shop)

    assert cli("schedules", "pause", "often", "--reason", "moving house", "--json").json["paused"] == 1
    assert "was paused already" in cli("schedules", "pause", "often").out
    assert "moving house" in cli("schedules", "show", "often").out
    (run,) = cli("schedules", "run", "often", "--json").json
    busy = cli("schedules", "run", "often")
    assert busy.code == 1 and "--force" in busy.out
    assert cli("schedules", "resume", "often", "--json").json["resumed"] == 1
    shown = cli("schedules", "show", "often", "--json").json
    assert [(each["job_id"], each["state"]) for each in shown["ticks"]] == [(run["job_id"], "queued")]


def test_what_code_declares_is_reconciled_and_kept_from_hands(
    cli: Cli, url: str, engine: AnyEngine, shop: str
) -> None:
    assert cli("schedules", "reconcile", "-A", shop, "--json").json["made"] == ["nightly"]
    assert "as it is declared" in cli("schedules", "reconcile", "-A", shop).out

    assert "FR-825" in cli("schedules", "set", "nightly", "--interval", "60").err
    assert "FR-825" in cli("schedules", "remove", "nightly").err
    taken = cli("schedules", "set", "nightly", "--interval", "60", "--take-over", "--json").json
    assert taken["origin"] == "person"
    assert "a person made it" in cli("schedules", "reconcile", "-A", shop).out


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (("set", "often", "clean", "--cron", "61 * * * *"), "FR-820", 2),
        (("set", "often", "clean", "--cron", "* * * * *", "--tz", "Nowhere/At_all"), "FR-821", 2),
        (("set", "often", "clean", "--rate", "-1"), "FR-820", 2),
        (("set", "often", "clean", "--interval", "60", "--window", "soon"), "FR-822", 2),
        (("set", "often", "clean", "--interval", "60", "--args", "[1]"), "FR-201", 2),
        (("set", "a/b", "clean", "--interval", "60"), "FR-201", 2),
        (("set", "often", "--interval", "60"), "FR-824", 1),
        (("pause", "often"), "FR-824", 1),
        (("show", "often"), "FR-824", 1),
    ],
)
def test_a_mistake_is_told_and_nothing_is_stored(
    cli: Cli, url: str, engine: AnyEngine, shop: str, arguments: tuple[str, ...], code: str, exit_code: int
) -> None:
    more = ("-A", shop) if "clean" in arguments else ()

    said = cli("schedules", *arguments, *more)

    assert code in said.err and said.code == exit_code
    assert cli("schedules", "list", "--json").json == []


def test_the_doctor_tells_of_schedules_that_nobody_fires(
    cli: Cli, url: str, engine: AnyEngine, shop: str
) -> None:
    cli("schedules", "set", "often", "clean", "--interval", "60", "-A", shop)

    found = {
        each["name"]: each["found"]
        for each in cli("doctor", "--json").json["findings"]
        if "schedule" in each["name"]
    }

    assert found["schedules"].startswith("1 fire")
