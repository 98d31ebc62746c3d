"""The screens of our own schema and of backfills."""

from __future__ import annotations

import asyncio
from typing import Any

from fencerow import App
from fencerow.core.schema.migrate import Applied
from fencerow.core.schema.rooms import known_migrations
from fencerow.migrations import Backfill
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screens.migrations import rooms_of
from tests.web.dashboard.visiting import Doorkeeper, Visits


def filled(app: App, rows: int = 30) -> Backfill:
    """A backfill of a table that raises at the keys above 20."""
    table = "fencerow.letters" if app.engine.traits.has_server else "letters"
    values = ", ".join(f"({n})" for n in range(1, rows + 1))
    app.client.make_ready()
    with app.engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
        session.connection.execute(f"INSERT INTO {table} VALUES {values}")

    def fill(_connection: Any, first: int, last: int) -> None:
        if last > 20:
            raise ValueError(f"postgres://ada:pw77@db refuses <b>{first}</b>")

    return Backfill(app, "senders", fill, table=table, key="id", batch_rows=10, failures_max=1)


async def test_a_backfill_is_seen_paused_resumed_and_told_where_it_failed(
    app: App, visits: Visits, door: Doorkeeper
) -> None:
    backfill = await asyncio.to_thread(filled, app)
    await backfill.astart()
    on = "/migrations"
    paused = await visits.press("/migrations/pause", on=on, back=on, name="senders")
    again = await visits.press("/migrations/pause", on=on, back=on, name="senders")
    resumed = await visits.press("/migrations/resume", on=on, back=on, name="senders")
    unknown = await visits.press("/migrations/pause", on=on, back=on, name="others")
    async with app.worker(queues=["backfills"]):
        while (await backfill.astatus()).state == "running":
            await asyncio.sleep(0.01)
    failed = await visits.see("/migrations/backfill?name=senders")
    door.role = Role.READ
    read = await visits.see(f"{on}?anew=1")  # what was seen a second ago is another address

    assert "senders is paused" in paused.text and "was not running" in again.text
    assert "senders goes on" in resumed.text and "was ever started" in unknown.text
    assert "Lane 0, keys 21 to 30" in failed.text and "refuses <b>21</b>" in failed.text
    assert "pw77" not in failed.text and "66.7 %: 20 rows of 30" in failed.text
    assert "1 range failed" in read.text and "Go on" not in read.text
    assert [(each.kind, each.verb) for each in await app.client.audit.aentries()] == [
        ("backfill", "resumed"), ("backfill", "paused"),
    ]  # fmt: skip


async def test_each_room_tells_what_is_missing(app: App, visits: Visits) -> None:
    page = await visits.see("/migrations")
    known = known_migrations("sqlite")
    applied = [Applied(each.version, each.name, each.checksum, 1) for each in known]
    applied[0] = Applied(known[0].version, known[0].name, "changed", 1)
    rooms = rooms_of("sqlite", applied[:-1])

    assert "core" in page.text and "missing" not in page.text and "No backfill was started" in page.text
    assert [len(each.missing) for each in rooms if each.missing] == [1]
    assert [len(each.altered) for each in rooms if each.altered] == [1]
    assert sum(each.migrations for each in rooms) == len(known)


async def test_a_backfill_that_nobody_started_is_a_page_that_says_so(visits_lite: Visits) -> None:
    page = await visits_lite.see("/migrations/backfill?name=x", status=404)

    assert "was ever started" in page.text
