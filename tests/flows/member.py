"""A worker that runs the jobs of flows, in a process of its own that may be killed."""

from __future__ import annotations

import asyncio
import sqlite3

import psycopg

from fencerow import App, Job
from fencerow.config import Config
from fencerow.flows import FlowHandle
from tests.kit.pace import slower

PARTS, SLOTS = 8, 3
JOBS = PARTS + 4  # with a first, two joins and a last


def flows_at(url: str) -> App:
    """An app whose jobs note that they ran, in their own transaction, so that what is noted has succeeded."""
    app = App(url, config=Config(lease_s=slower(2.0), renew_s=slower(0.3), poll_max_s=0.2, poll_min_s=0.01))

    @app.job(attempts_max=100, crashes_max=100, snoozes_max=1000)
    def part(job: Job, word: str) -> str:
        with job.transaction() as connection:
            note(connection, word)
        return word

    @app.job(attempts_max=100, crashes_max=100, snoozes_max=1000)
    def join(job: Job, word: str) -> str:
        found = app.flows.inputs(job.id)
        words = [*found.results(part).values(), *found.results(join).values()]
        with job.transaction() as connection:
            note(connection, word)
        return " ".join(words)

    return app


def note(connection: psycopg.Connection | sqlite3.Connection, word: str) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("INSERT INTO fencerow_ran (word) VALUES (?)", (word,))
    else:
        connection.execute("INSERT INTO fencerow.ran (word) VALUES (%s)", (word,))


def submitted(app: App, name: str) -> FlowHandle:
    """A flow of twelve jobs: one, eight behind it, two behind four each, one behind these; and one when all is done."""
    part, join = app.jobs["part"], app.jobs["join"]
    flow = app.flow(name)
    first = flow.add("first", part.call(f"{name} first"))
    parts = [flow.add(f"part {at}", part.call(f"{name} part {at}"), needs=[first]) for at in range(PARTS)]
    joins = [flow.add(f"join {at}", join.call(f"{name} join {at}"), needs=parts[at::2]) for at in range(2)]
    flow.add("last", join.call(f"{name} last"), needs=joins)
    flow.on_done(part.call(f"{name} done"))
    return flow.submit()


def work(url: str) -> None:
    """Run a worker until this process is killed."""
    asyncio.run(flows_at(url).worker(slots=SLOTS).run())
