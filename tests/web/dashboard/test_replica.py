"""Pages read from a standby as long as it keeps up, and from the database itself otherwise; each page says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fencerow import App
from fencerow.errors import ConfigError
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.source import Source
from fencerow.web.settings import WebSettings
from tests.web.dashboard.visiting import Doorkeeper, Visits
from tests.whole.failover.conftest import DATABASE, ROLE, Pair
from tests.whole.failover.conftest import pair as pair
from tests.whole.outages.conftest import report as report

HOUR_S = 3600.0


@pytest.fixture
async def app(pair: Pair) -> AsyncIterator[App]:
    async with App(pair.primary.conninfo(DATABASE, ROLE)) as made:
        made.migrate()
        made.job(name="mail", queue="letters")(mail)
        yield made


async def mail(to: str) -> None: ...


def visits_of(board: Dashboard) -> Visits:
    return Visits(httpx.AsyncClient(transport=httpx.ASGITransport(board), base_url="http://127.0.0.1"))


async def test_pages_read_from_a_replica_that_keeps_up_and_say_so(app: App, pair: Pair) -> None:
    config = replace(app.config, web_replica_lag_s=HOUR_S)
    patient = App(config=config)
    first = await app.asubmit_by_name("mail", {"to": "ada"})
    pair.standby.catch_up()
    replica = pair.standby.conninfo(DATABASE, ROLE)
    board = Dashboard(patient, authorize=Doorkeeper(Role.ACT), read_only=False, replica=replica)
    visits = visits_of(board)
    pair.part()
    later = await app.asubmit_by_name("mail", {"to": "bob"})
    behind = await visits.see("/jobs")

    assert "read from the replica" in behind.text
    assert first.id in str(behind.tags) and later.id not in str(behind.tags)

    pressed = await visits.press("/queues/pause", on=f"/jobs/{first.id}", queue="letters", back="/jobs")
    assert "Queue letters is paused" in pressed.text and "read from the primary" in pressed.text
    assert later.id in str(pressed.tags)
    await board.aclose()
    await patient.aclose()


@pytest.mark.prove
async def test_one_that_is_behind_or_gone_is_left(app: App, pair: Pair) -> None:
    strict = App(config=replace(app.config, web_replica_lag_s=0.0))
    pair.part()
    later = await app.asubmit_by_name("mail", {"to": "bob"})
    board = Dashboard(strict, authorize=Doorkeeper(Role.READ), replica=pair.standby.conninfo(DATABASE, ROLE))
    behind = await visits_of(board).see("/jobs")
    await board.aclose()
    pair.standby.stop("immediate")
    board = Dashboard(strict, authorize=Doorkeeper(Role.READ), replica=pair.standby.conninfo(DATABASE, ROLE))
    gone = await visits_of(board).see("/jobs")
    await board.aclose()
    await strict.aclose()

    assert "read from the primary: the replica is" in behind.text and later.id in str(behind.tags)
    assert "the replica does not answer" in gone.text and later.id in str(gone.tags)


def test_a_file_is_no_replica(tmp_path: Path) -> None:
    with App(f"sqlite:///{tmp_path}/x.db") as app, pytest.raises(ConfigError, match="web_replica_url"):
        Source(WebSettings.of(app.config), app.config, lambda: app.engine, f"sqlite:///{tmp_path}/y.db")
