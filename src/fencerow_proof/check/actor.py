"""One run of a handler, in a process of its own: what the starter's forks become."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from fencerow.app import App
from fencerow.core.app.options import submit_options
from fencerow.core.errors import FencerowError
from fencerow.core.locator import check_tables
from fencerow.core.model.codec import args_version_of
from fencerow.core.model.control import Retry
from fencerow.core.model.outcome import Followed, Retried, Snoozed, Succeeded
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.calling import Calls
from fencerow.core.worker.deciding import Committed, Decider, Decision
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.url import PostgresUrl, parse_url
from fencerow.declaring import DeclaredJob
from fencerow.guards.mutex.renewing import THREAD
from fencerow.testing.clock import clock_of
from fencerow_proof.check import audit
from fencerow_proof.check.drivers.install import lead_all, watch_all
from fencerow_proof.check.outside import fake_all, found
from fencerow_proof.check.places import Places
from fencerow_proof.check.seam import Seam
from fencerow_proof.check.wire import Channel, Declared, Ended, Play, Prepare, Prepared, Refused

GIVE_BACK_S = 2.0
KILL_S = 3600.0  # it is the director that ends a run


@dataclass(frozen=True)
class Subject:
    """What is checked, as the starter has imported it."""

    app: App
    job: DeclaredJob[..., ..., Any, Any]
    arguments: dict[str, Any]
    outside: list[Declared]
    setup: str | None
    named: str  # the file of the SQLite database that the app names
    places: Places


def prepare(subject: Subject, url: str, part: Prepare, channel: Channel) -> None:
    """Make the tables, ours and the user's, and submit the job under each id."""
    lead_all(url, subject.named)
    app = _moved(subject.app, url)
    try:
        app.migrate()
        if subject.setup is not None:
            _set_up(subject.setup, url)
        for job_id in part.ids:
            app.submit(subject.job.call_with(subject.arguments, submit_options(id=job_id)))
        app.close()
    except FencerowError as error:
        channel.send(Refused(type(error).__name__, error.what, error.why, error.fix))
        return
    except Exception as error:
        where = subject.places.of(error)
        channel.send(
            Refused(
                "CheckNeedsMore",
                f"the scratch database could not be set up: {type(error).__name__}: {error}",
                f"raised at {where}" if where else "",
                "correct the setup, which makes the tables that the handler needs",
            )
        )
        return
    channel.send(Prepared())


def play(subject: Subject, url: str, part: Play, channel: Channel) -> None:
    """Run one attempt as a worker would, each action at the director's word."""
    lead_all(url, subject.named)
    config = subject.app.config
    seam = Seam(channel, subject.places, (config.table_prefix, f"{config.schema}."))
    watch_all(seam)
    fake_all(seam, subject.outside)
    address = parse_url(url)
    if isinstance(address, PostgresUrl):
        _own_address(address.conninfo)
    audit.watch(seam, part.allowed, Path(part.folder))
    app = _moved(subject.app, url)
    check_tables(app)  # as a worker has, before it runs anything
    if isinstance(app.engine, SqliteEngine):  # PostgreSQL's own clock was moved
        clock_of(app.engine).advance(part.passed_s)
    told = Told(seam, subject.job.handler.function, subject.job.handler.is_async)
    ended = asyncio.run(_run(app, subject, part, told))
    _let_give_back()
    channel.send(ended)


class Told:
    """The handler's function, and what came out of it: the decision alone does not tell where an error was raised."""

    def __init__(self, seam: Seam, function: Callable[..., Any], is_async: bool) -> None:
        self.error: BaseException | None = None
        self.seam = seam
        self.function = self._async(function) if is_async else self._plain(function)

    def _async(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            coroutine = function(*args, **kwargs)
            self.seam.places.coroutine = coroutine
            self.seam.is_open = True
            try:
                return await coroutine
            except BaseException as error:
                self.error = error
                raise

        return call

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.seam.places.thread = threading.get_ident()
            self.seam.is_open = True
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self.error = error
                raise

        return call


async def _run(app: App, subject: Subject, part: Play, told: Told) -> Ended:
    handler = replace(subject.job.handler, function=told.function)
    engine = app.engine
    decider = Decider(engine, app.telemetry, unknown_max_s=app.config.unknown_max_s)
    calls = Calls(engine, decider, app.telemetry, subject.job.middleware, kill_s=KILL_S)
    attempt = Attempt(part.claimed, part.holder, handler)
    version = args_version_of(bytes(part.claimed.options))
    args, kwargs = handler.called_with(part.claimed.id, bytes(part.claimed.args), version)
    try:
        decision = await calls.call(attempt, args, kwargs, lambda: None)
    finally:
        told.seam.is_open = False
    return _ended(decision, told)


def _let_give_back() -> None:
    """A mutex that could not be given back at once is given back in the background, as in a worker that goes on."""
    until = time.monotonic() + GIVE_BACK_S
    while time.monotonic() < until and any(each.name == THREAD for each in threading.enumerate()):
        time.sleep(0.01)


def _ended(decision: Decision, told: Told) -> Ended:
    if isinstance(decision, Succeeded):
        return Ended("Succeeded", result=decision.result.decode(), follow_ups=_follow_ups(decision))
    if isinstance(decision, Committed):
        return Ended("Committed")
    error = told.error
    text = None if error is None else " ".join(f"{type(error).__name__}: {error}".split())[:500]
    if text is None and decision is not None:
        text = msgspec.json.encode(decision).decode()[:500]
    place = None if error is None else told.seam.places.of(error)
    # Any error is tried again some time; only what the handler says by itself is no failure.
    put_back = isinstance(decision, Snoozed) or (isinstance(decision, Retried) and isinstance(error, Retry))
    back_in_s = decision.delay_s if put_back and isinstance(decision, Snoozed | Retried) else None
    raised = None if error is None else type(error).__name__
    return Ended(
        "Lost" if decision is None else type(decision).__name__, None, text, place, back_in_s, raised
    )


def _follow_ups(decision: Succeeded) -> list[tuple[str, str]]:
    if not isinstance(decision, Followed):
        return []
    return [(each.job.template.name, each.job.args) for each in decision.submissions]


def _moved(app: App, url: str) -> App:
    """The same app on the scratch database. This process was forked for one run, so there is no way back."""
    app.config = replace(app.config, url=url)
    app.is_named = True
    return app


def _set_up(setup: str, url: str) -> None:
    if setup.endswith(".sql"):
        _run_script(Path(setup).read_text("utf-8"), url)
        return
    function = found(setup)[2]
    if asyncio.iscoroutinefunction(function):
        asyncio.run(function(url))
    else:
        function(url)


def _run_script(text: str, url: str) -> None:
    place = parse_url(url)
    if isinstance(place, PostgresUrl):
        import psycopg

        with psycopg.connect(place.conninfo, autocommit=True) as connection:
            connection.execute(text.encode())
        return
    import sqlite3

    there = sqlite3.connect(place.path)
    there.executescript(text)
    there.close()


def _own_address(conninfo: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    known = conninfo_to_dict(conninfo)
    port = known.get("port")
    audit.own(str(known["host"]) if known.get("host") else None, int(port) if port else None)
