"""The canary: it measures a real kill, refuses where it would disturb, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import msgspec
import pytest

from fencerow import App
from fencerow.core.config import CoreConfig
from fencerow.core.model.person import Person, Via
from fencerow.core.model.state import LIVE, WorkerState
from fencerow.db.run import Param
from fencerow.doctor.canary import member
from fencerow.doctor.canary.sending import note_canary, send
from fencerow.doctor.canary.trial import Trial
from fencerow.errors import CanaryRefused
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.pace import PATIENCE_S, slower

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures
ADA = Person("ada", Via.COMMAND, reason="to see")
MEASURED = Trial(
    job_id="a",
    lease_s=30,
    sweep_s=15,
    sent_us=0,
    killed_us=10_000_000,
    reclaimed_us=50_000_000,
    done_us=51_000_000,
)


def config_of(app: App) -> CoreConfig:
    return replace(app.config, lease_s=slower(2.0), renew_s=0.3, sweep_s=0.3)


def made(url: str) -> App:
    app = App(url)
    app.check_or_create()
    return app


async def test_it_measures_a_kill_and_leaves_only_an_entry_in_the_audit_log(url: str) -> None:
    heard: list[Trial] = []
    async with made(url) as app:
        trial = await send(config_of(app), ADA, within_s=PATIENCE_S, tell=heard.append)
        left = await app.client.alist_jobs()
        workers = await app.client.workers.aregistered(state=WorkerState.ALIVE)
        entries = [each for each in await app.client.audit.aentries() if each.kind == "canary"]

    assert [name for name, _, _ in trial.steps] == [
        "sent",
        "claimed",
        "killed",
        "reclaimed",
        "claimed again",
        "done",
    ]
    assert heard[0].steps == trial.steps[:1] and heard[-1] == trial
    at = [at_us for _, at_us, _ in trial.steps]
    assert at == sorted(at) and trial.trouble is None
    assert (trial.lease_s, trial.sweep_s) == (slower(2.0), 0.3)
    assert left == [] and workers == []
    assert [(each.person, each.verb, each.targets) for each in entries] == [("ada", "sent", [trial.job_id])]


async def test_a_second_one_is_refused_and_changes_nothing(url: str) -> None:
    async with made(url) as app:
        first = member.made(member.Orders({"url": app.config.url}, hangs=False))
        under_way = await first.asubmit_by_name(member.NAME, {}, unique="canary")

        with pytest.raises(CanaryRefused, match=under_way.id):
            await send(config_of(app), ADA)
        jobs = await app.client.alist_jobs()
        await first.aclose()

    assert [each.id for each in jobs] == [under_way.id]


async def test_one_whose_process_cannot_start_is_taken_away_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    async with made(url) as app:
        with pytest.raises(CanaryRefused, match="did not come so far"):
            await send(config_of(app), ADA)

        assert await app.client.alist_jobs(states=list(LIVE)) == []


async def test_only_a_canary_is_noted_as_one(url: str) -> None:
    async with made(url) as app:
        app.job(name="mail")(_mail)
        handle = await app.asubmit_by_name("mail", {})

        assert await app.engine.arun(note_canary(handle.id, actor="ada")) == []


def test_under_maintenance_none_is_sent(cli: Cli, url: str) -> None:
    cli("migrate")
    cli("maintenance", "on", "--reason", "a move")
    result = cli("canary")

    assert result.code == 1 and "FR-933" in result.err and "a move" in result.err
    assert cli("jobs", "list", "--json").json == []


@pytest.mark.parametrize(
    ("found", "holds", "told"),
    [
        (
            {},
            True,
            "40.0 s from the kill to the reclaim, 51.0 s from the submit to its end; promised are 45 s",
        ),
        ({"reclaimed_us": 60_000_000}, False, "50.0 s from the kill to the reclaim"),
        ({"reclaimed_us": None, "done_us": None, "trouble": "nobody"}, False, "not measured: nobody"),
        ({"done_us": None}, False, "40.0 s"),
    ],
)
def test_the_measured_bound_stands_beside_the_promised_one(
    found: dict[str, Param], holds: bool, told: str
) -> None:
    trial = msgspec.structs.replace(MEASURED, **found)

    assert trial.holds is holds
    assert trial.told.startswith(told)


async def _mail() -> None:
    await asyncio.sleep(0)
