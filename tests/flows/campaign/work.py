"""A worker that runs the jobs of flows, in a process of its own that may be killed; and the flows that it runs."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg

from fencerow import App, Fail, Job
from fencerow.config import Config
from fencerow.flows import Flow, FlowHandle
from tests.kit.pace import slower

PARTS, CHILDREN, SLOTS = 5, 3, 3
OUTER = PARTS + 4  # with a first, a join, a parent and a last
JOBS = OUTER + CHILDREN
FAILING = 10  # of so many flows one has a part that fails for good
BUDGET: Any = {"attempts_max": 1000, "crashes_max": 1000, "snoozes_max": 1000}


def flows_at(url: str) -> App:
    """An app whose jobs note what they do in a step's transaction, and in that of their success.

    What is noted twice was done twice.
    """
    app = App(url, config=Config(lease_s=slower(2.0), renew_s=slower(0.3), poll_max_s=0.2, poll_min_s=0.01))

    @app.job(**BUDGET)
    def part(job: Job, word: str) -> str:
        job.step_in_transaction("step", note, f"{word}: step")
        return ended(job, word, word)

    @app.job(**BUDGET)
    def broken(job: Job, word: str) -> str:
        job.step_in_transaction("step", note, f"{word}: step")
        raise Fail("it is to fail")

    @app.job(**BUDGET)
    def join(job: Job, word: str) -> str:
        found = app.flows.inputs(job.id)
        return ended(job, word, " ".join([*found.results(part).values(), *found.results(parent).values()]))

    @app.job(**BUDGET)
    def parent(job: Job, word: str) -> str:
        flow = app.flow("children")
        for at in range(CHILDREN):
            flow.add(f"child {at}", part.call(f"{word} child {at}"))
        return ended(job, word, " ".join(flow.run_within(job).results(part).values()))

    return app


def ended(job: Job, word: str, result: str) -> str:
    with job.transaction() as connection:
        note(connection, f"{word}: end")
    return result


def note(connection: Any, word: str) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("INSERT INTO fencerow_ran (word) VALUES (?)", (word,))
    else:
        assert isinstance(connection, psycopg.Connection)
        connection.execute("INSERT INTO fencerow.ran (word) VALUES (%s)", (word,))


def fails(at: int) -> bool:
    return at % FAILING == FAILING - 1


def submitted(app: App, at: int) -> FlowHandle:
    """One flow: a first, parts behind it, a join of these, a parent of children of its own, a last; and callbacks."""
    part, join = app.jobs["part"], app.jobs["join"]
    flow = app.flow(f"flow {at}")
    first = flow.add("first", part.call(f"{at} first"))
    parts = [
        flow.add(
            f"part {number}",
            (app.jobs["broken"] if number == 0 and fails(at) else part).call(f"{at} part {number}"),
            needs=[first],
        )
        for number in range(PARTS)
    ]
    joined = flow.add("join", join.call(f"{at} join"), after=parts)
    parent = flow.add("parent", app.jobs["parent"].call(f"{at} parent"), needs=[joined])
    flow.add("last", join.call(f"{at} last"), needs=[parent])
    _call_back(flow, part, at)
    return flow.submit()


def _call_back(flow: Flow, part: Any, at: int) -> None:
    flow.on_done(part.call(f"{at} done"))
    flow.on_succeeded(part.call(f"{at} succeeded"))
    flow.on_failed(part.call(f"{at} failed"))


def expected(at: int) -> Iterator[str]:
    """All that is to be noted of this flow, each once."""
    both = [f"{at} first", *(f"{at} part {number}" for number in range(PARTS))]
    both += [f"{at} parent child {number}" for number in range(CHILDREN)]
    both += [f"{at} done", f"{at} {'failed' if fails(at) else 'succeeded'}"]
    for word in both:
        yield f"{word}: step"
        if not (fails(at) and word == f"{at} part 0"):
            yield f"{word}: end"
    for word in ("join", "parent", "last"):
        yield f"{at} {word}: end"


def work(url: str) -> None:
    """Run a worker until this process is killed."""
    asyncio.run(flows_at(url).worker(slots=SLOTS).run())
