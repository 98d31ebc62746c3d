"""`event.transaction(session=…)`: what the user's session did and the acknowledgement are one commit."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fencerow import App, Backoff
from fencerow.db.postgres import PostgresEngine
from fencerow.events import Event, EventBus, apublish, consumer
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE, TEMPLATE
from tests.core.worker.sessions.conftest import jobs, kind, users  # noqa: F401 (fixtures)
from tests.core.worker.sessions.users import Users, adds
from tests.db.lenders import settled
from tests.events.conftest import app_on
from tests.kit.pace import PATIENCE_S

FAST: dict[str, Any] = {
    "topics": ["t"],
    "start": "beginning",
    "partitions": 1,
    "deliveries_max": 2,
    "backoff": Backoff(base_s=0.05, cap_s=0.05, jitter=0.0),
}


def consuming(user: Users, app: App, body: Any, given: Any = None) -> Counter[str]:
    """A group whose handler writes by the user's session; counts deliveries by what the event says."""
    seen: Counter[str] = Counter()
    maker = given or user.maker

    async def on_loop(event: Event) -> None:
        seen[event.data] += 1
        async with event.transaction(session=maker) as session:
            await session.run_sync(lambda sync: body(sync, event))

    def plain(event: Event) -> None:
        seen[event.data] += 1
        with event.transaction(session=maker) as session:
            body(session, event)

    consumer(app, group="ledger", **FAST)(on_loop if user.kind.awaits else plain)
    return seen


async def parked(app: App, count: int) -> list[str]:
    """The types of the errors of what is parked, once there is so much."""
    async with asyncio.timeout(PATIENCE_S):
        while len(found := await EventBus(app).aparked()) < count:
            await asyncio.sleep(0.02)
    return [each.error["type"].rpartition(".")[2] for each in found]


async def drained(app: App) -> None:
    """Everything is acknowledged or put aside."""
    async with asyncio.timeout(PATIENCE_S):
        while sum(group.events + group.waiting + group.unplaced for group in await EventBus(app).alag()):
            await asyncio.sleep(0.02)


def by_data(session: Session, event: Event) -> None:
    match event.data:
        case "twice":  # the flush at the end of the block fails
            adds(1, "again")(session)
        case "commits":
            adds(5, "beside")(session)
            session.flush()
            session.commit()
        case "nested":
            with pytest.raises(IntegrityError), session.begin_nested():
                adds(1, "again")(session)
            adds(3, "nested")(session)
        case name:
            adds(1, name)(session)


async def test_effects_and_acknowledgement_are_one_commit(users: Users) -> None:  # noqa: F811
    app = app_on(users.jobs)
    seen = consuming(users, app, by_data)
    for number, data in enumerate(("paid", "twice", "commits", "nested")):
        await apublish(app, "t", data, key=str(number))

    async with app.worker():
        types = await parked(app, 2)
        await drained(app)
    await app.aclose()

    assert sorted(types) == ["EventTransactionMisuse", "IntegrityError"]
    assert seen == {"paid": 1, "nested": 1, "twice": 2, "commits": 2}
    assert users.names() == ["nested", "paid"]


async def test_a_reader_that_lost_its_partition_commits_nothing(users: Users) -> None:  # noqa: F811
    app = app_on(users.jobs)
    lost = Counter[str]()

    def body(session: Session, event: Event) -> None:
        lost[event.data] += 1
        if lost[event.data] == 1:  # somebody else took over: its fence has moved on
            table = "fencerow.event_cursors" if users.kind.dialect == "postgres" else "fencerow_event_cursors"
            session.connection().exec_driver_sql(f"UPDATE {table} SET fence = fence + 1")
        adds(1, "paid")(session)

    consuming(users, app, body)
    await apublish(app, "t", "paid")

    async with app.worker():
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(users.names):  # the loop must go on: the worker is in it
                await asyncio.sleep(0.02)
        await drained(app)
    await app.aclose()

    assert (lost["paid"], users.names()) == (2, ["paid"])


async def test_a_session_on_another_database_is_refused(users: Users, server: PostgresServer) -> None:  # noqa: F811
    if not isinstance(users.jobs, PostgresEngine):
        pytest.skip("a file is compared by its name, as for every lent connection")
    server.create_database("other_events", template=TEMPLATE)
    other: Any = users.connected(server.conninfo("other_events", ROLE))
    app = app_on(users.jobs)
    consuming(users, app, by_data, users.sessions(other))
    await apublish(app, "t", "paid")

    async with app.worker():
        types = await parked(app, 1)
    await app.aclose()
    await settled(other.dispose())
    server.drop_database("other_events")

    assert types == ["OtherDatabase"]
