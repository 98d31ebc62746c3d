"""`drain` does what a worker does: the same submits end alike, with each option that a submit or a job may have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from fencerow import App, Backoff, Job, Snooze
from fencerow.batches import BatchItem
from fencerow.limits import Limit, Rate
from fencerow.options import GivenSubmitOptions
from fencerow.testing import Clock, drain, submitted
from tests.kit.databases import copy_files
from tests.kit.pace import PATIENCE_S

Options = Mapping[str, Any]
Play = Callable[[App, Sequence[str]], None]
Seen = tuple[list[str], list[tuple[Any, ...]]]

SERVED = ("default", "other")
KEYED = "0192d3f0-0000-7000-8000-000000000001"
LIMITED, LABELLED, WAITS_FOR_LABEL = "under a limit", "for a label", "for a label or anybody"
OWN_TRANSACTION = "in a transaction of one's own"
DUE = datetime(2020, 1, 1, tzinfo=UTC)
CASES: Mapping[str, Options] = {
    "nothing": {},
    "a delay": {"delay_s": 60, "ephemeral": True},
    "an instant, and what is only stored": {
        "run_at": DUE, "priority": 5, "timeout_s": 5, "backoff": Backoff(base_s=5, jitter=0), "retention_s": 3600,
        "headers": {"trace": "1"}, "metadata": {"of": "ann"}, "tags": ["red"],
    },
    "one attempt": {"attempts_max": 1},
    "an expiry": {"expires_s": 30},
    "another queue": {"queue": "other"},
    "a key": {"id": KEYED, "key": "k", "scope": "s", "key_lifetime_s": 30},
    "unique": {"unique": "same"},
    "debounced": {"unique": "same", "debounce_s": 60, "debounce_max_s": 90},
    "throttled": {"unique": "same", "throttle_s": 60},
    "a share": {"share": "ann"},
    "a handover": {"handover": "ledger"},
    "exclusive": {"exclusive": "account"},
    "exclusive, by two": {"exclusive": "account", "exclusive_at_once": 2},
    "exclusive, in strict order": {"exclusive": "account", "strict": True},
    "exclusive, and due later": {"exclusive": "account", "delay_s": 60},
    "exclusive, and expiring": {"exclusive": "account", "expires_s": 30},
    LIMITED: {"limits": "slow"},
    LABELLED: {"affinity": "gpu"},
    WAITS_FOR_LABEL: {"affinity": "gpu", "affinity_wait_s": 60},
    OWN_TRANSACTION: {"connection": ...},
}  # fmt: skip
SHAPES = ("a batch", "a follow-up", "beside a paused queue", "a schedule")


class Shop:
    """An app on a file of its own, and what its jobs did."""

    def __init__(self, url: str) -> None:
        self.done: list[str] = []
        self.app = app = App(url, limits=[Limit("slow", rate=Rate(1, per_s=60))])
        rule = Backoff(base_s=60, jitter=0)

        @app.job(name="work", attempts_max=3, backoff=rule)
        def work(job: Job, how: str) -> str:
            self.done.append(f"{how} {job.attempt}")
            if job.attempt == 1 and how == "retried":
                raise ConnectionError
            if job.attempt == 1 and how == "snoozed":
                raise Snooze(60)
            return how

        @app.job(name="first")
        def first(job: Job) -> None:
            job.submit_next(work.using(exclusive="account", delay_s=60).call("next"))

        @app.batch_job(name="together", batch_max=2)
        def together(items: Sequence[BatchItem[str, None]]) -> None:
            self.done.append("+".join(item.value for item in items))

        self.work, self.first, self.together = work, first, together

    def submit(self, case: str) -> None:
        """A job that succeeds, one that is retried and one that snoozes, with these options; or a shape."""
        if case == "a batch":
            for how in "abc":
                self.together.submit(how)
        elif case == OWN_TRANSACTION:
            with self.app.engine.session() as session:
                self.work.using(connection=session.connection).submit("fine")
        elif case == "a follow-up":
            self.first.submit()
        elif case == "a schedule":
            self.app.schedule(self.work.call("fired"), "hourly", interval_s=3600)
        elif case == "beside a paused queue":  # who is paused has the turn of a key, and lets it go
            self.work.using(queue="other", exclusive="account").submit("paused")
            self.app.pause_queue("other")
            self.work.using(exclusive="account").submit("fine")
        else:
            options = cast("GivenSubmitOptions", CASES[case])
            for how in ("fine", "retried", "snoozed")[: 1 if "key" in options else 3]:
                self.work.using(**options).submit(how)

    def seen(self) -> Seen:
        """What was run, in its order, and what has become of all jobs."""
        jobs = submitted(self.app)
        return self.done, [(each.name, each.args, each.state, each.attempt, each.failures) for each in jobs]


def works(app: App, labels: Sequence[str]) -> None:
    """A real worker, until nothing is due."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await app.worker(SERVED, slots=1, labels=labels).run(until_idle=True)
        await app.engine.aclose()

    asyncio.run(main())


def drains(app: App, labels: Sequence[str]) -> None:
    drain(app, queues=SERVED, labels=labels)


def played(url: str, case: str, play: Play) -> list[Seen]:
    """What was seen after each round; between them the time moves past what the options say."""
    shop, rounds = Shop(url), list[Seen]()
    try:
        shop.app.declare_limits()
        clock = Clock(shop.app)
        shop.submit(case)
        for seconds in (0, 61, 3700):
            clock.advance(seconds)
            play(shop.app, ["gpu"] if case == LABELLED else [])
            done, jobs = shop.seen()
            rounds.append((list(done), jobs))
    finally:
        shop.app.close()
    return rounds


def test_each_option_of_a_submit_is_played() -> None:
    assert {name for options in CASES.values() for name in options} == set(GivenSubmitOptions.__annotations__)


@pytest.mark.parametrize("case", [*CASES, *SHAPES])
def test_on_a_file(case: str, migrated_path: Path) -> None:
    other = migrated_path.with_name("other.db")
    copy_files(migrated_path, other)

    by_worker = played(f"sqlite:///{migrated_path}", case, works)
    by_drain = played(f"sqlite:///{other}", case, drains)

    assert by_drain == by_worker
    assert by_worker[-1][0], "a worker ran something"


@pytest.mark.parametrize("case", [LIMITED, WAITS_FOR_LABEL])
def test_on_postgresql(case: str, postgres_url: str, other_postgres_url: str) -> None:
    assert played(other_postgres_url, case, drains) == played(postgres_url, case, works)
