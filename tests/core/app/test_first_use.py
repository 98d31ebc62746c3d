"""The first use of anything in a process may be inside `job.transaction()`: it was looked for the tables before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fencerow import App, Job
from fencerow.events import apublish, publish
from fencerow.guards.once import DedupeWindow, once
from fencerow.guards.replace import forget_source
from fencerow.guards.transitions import Move, MoveEvents, Transitions


def moves(app: App) -> Transitions:
    return Transitions(
        app,
        table="fencerow.letters" if app.engine.dialect == "postgres" else "letters",
        column="state",
        states=["new", "sent"],
        moves=[Move("send", "new", "sent")],
        publisher=MoveEvents("letter"),
    )


def prepare(url: str) -> None:
    """What another process did before: the tables, and a row."""
    with App(url) as before:
        before.check_or_create()
        name = "fencerow.letters" if before.engine.dialect == "postgres" else "letters"
        with before.engine.session() as session:
            session.connection.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, state text)")
            session.connection.execute(f"INSERT INTO {name} VALUES (1, 'new')")


SYNC: dict[str, Callable[[App, Any], object]] = {
    "publish": lambda app, c: publish(app, "order.done", 1, connection=c),
    "once": lambda app, c: once(app, "k", connection=c).call(lambda: 1),
    "window": lambda app, c: DedupeWindow(app, "w", 5).admit("a", "b", connection=c),
    "forget": lambda app, c: forget_source(app, table="chunks", source="faq", connection=c),
    "move": lambda app, c: moves(app).move("send", 1, connection=c),
    "submit": lambda app, c: app.jobs["idle"].using(connection=c).submit(),
}


async def _once(app: App, c: Any) -> object:
    return await once(app, "k", connection=c).acall(asyncio.sleep, 0)


ASYNC: dict[str, Callable[[App, Any], Awaitable[object]]] = {
    "publish": lambda app, c: apublish(app, "order.done", 1, connection=c),
    "once": _once,
    "window": lambda app, c: DedupeWindow(app, "w", 5).aadmit("a", "b", connection=c),
}


@pytest.mark.parametrize("what", SYNC)
async def test_the_first_use_may_be_in_the_transaction_of_a_plain_handler(url: str, what: str) -> None:
    prepare(url)
    app = App(url)

    @app.job(attempts_max=1)
    def write(job: Job) -> str:
        with job.transaction() as connection:
            SYNC[what](app, connection)
        return "written"

    assert await ran(app, url) == "written"


@pytest.mark.parametrize("what", ASYNC)
async def test_and_in_that_of_a_coroutine(url: str, what: str) -> None:
    prepare(url)
    app = App(url)

    @app.job(attempts_max=1)
    async def write(job: Job) -> str:
        async with job.transaction() as connection:
            if app.engine.dialect == "sqlite":  # it lends a sync connection there
                SYNC[what](app, connection)
            else:
                await ASYNC[what](app, connection)
        return "written"

    assert await ran(app, url) == "written"


async def ran(app: App, url: str) -> object:
    """Submit from another place, as another process does, so that the worker's own has used nothing yet."""

    @app.job
    def idle() -> None:
        pass

    async with App(url) as outside:

        @outside.job(attempts_max=1)
        def write() -> str:
            raise AssertionError("this app only submits")

        handle = await write.asubmit()
        async with app, app.worker():
            return await handle.aresult(timeout_s=60)
