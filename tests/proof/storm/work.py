"""The jobs of a storm. Each says by its result, its effect or the sink which attempt of it was carried out."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fencerow import App, Backoff, Config, Defaults, Fail, Job
from fencerow.batches import BatchItem
from fencerow.guards.once import once
from fencerow.payloads import PayloadStore
from tests.proof.storm.plan import LABEL, LIMIT_S, WEDGE_LIMIT_S

# A storm may kill a worker more often than a job's own budget expects; what is tested is not the budget.
PATIENT = Defaults(
    attempts_max=1000, crashes_max=1000, snoozes_max=1000, backoff=Backoff(base_s=0.05, cap_s=0.2)
)

HEAVY = frozenset({"heavy", "heavy_plain"})  # their arguments and results lie in the store outside
LOAD_BYTES = 1500

Mark = Callable[[str, int], None]
Inside = Callable[[str], AbstractContextManager[None]]
TURN_S = 0.1  # long enough that one too many is there together with the others
HELD_S = {"postgresql": 0.6, "sqlite": 0.05}  # a transaction of SQLite keeps everybody waiting


class Work:
    """One program with these jobs, as each worker and each client has it.

    `mark` writes a line of the outside sink; `inside` shows to the outside that a guarded transaction is open;
    `blocks` says whether its wedges block the event loop, which ends the process.
    """

    def __init__(
        self,
        url: str,
        config: Config,
        mark: Mark | None = None,
        inside: Inside = lambda _job_id: nullcontext(),
        *,
        outside: PayloadStore,
        blocks: bool = True,
    ) -> None:
        self.app = App(url, config=config, defaults=PATIENT, outside=outside)
        sink: Mark = mark or (lambda _job_id, _attempt: None)
        table = "fencerow.effect" if url.startswith("postgresql:") else "fencerow_effect"
        held_s = HELD_S[url.partition(":")[0]]
        insert = f"INSERT INTO {table} VALUES ('{{}}', {{}}, '{{}}')"

        @self.app.job
        async def pay(job: Job, n: int) -> int:
            async with job.transaction() as connection:
                await _done(connection.execute(insert.format(job.id, job.attempt, job.holder)))
            return job.attempt

        @self.app.job
        def pay_plain(job: Job, n: int) -> int:
            with job.transaction() as connection:
                connection.execute(insert.format(job.id, job.attempt, job.holder))
            return job.attempt

        @self.app.job
        async def pay_again(job: Job, n: int) -> int:
            async with job.transaction() as connection:
                await _done(connection.execute(insert.format(job.id, job.attempt, job.holder)))
            if job.failures == 0:
                raise RuntimeError("once, after the effect was written")
            return job.attempt

        @self.app.job
        async def look(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(0.002)
            return job.attempt

        @self.app.job
        def read(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            time.sleep(0.004)
            return job.attempt

        @self.app.job
        async def nap(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            if job.snoozes < 1 + n % 2:
                job.snooze(0.05)
            return job.attempt

        @self.app.job
        async def slow(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(0.2 + n % 8 / 5)
            return job.attempt

        @self.app.job
        def slow_plain(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            if job.wait_cancelled(0.2 + n % 8 / 5):
                job.raise_if_cancelled()
            return job.attempt

        @self.app.job
        async def long(job: Job, n: int) -> int:
            # Longer than what is left of a stop when others have taken over: then both attempts are under way.
            sink(job.id, job.attempt)
            await asyncio.sleep(1.6 + n % 4 / 5)
            return job.attempt

        @self.app.job
        async def doomed(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            if job.attempt % 2:
                raise Fail("until somebody revives it")
            return job.attempt

        @self.app.job(timeout_s=LIMIT_S)
        async def limited(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(0.3)
            return job.attempt

        @self.app.job(timeout_s=LIMIT_S)
        def limited_plain(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            time.sleep(0.3)
            return job.attempt

        @self.app.job
        def guarded(job: Job, n: int) -> int:
            # A guard of ours takes locks of its own inside the job's transaction, which stays open for a while.
            with job.transaction() as connection, inside(job.id):
                once(self.app, f"guarded {job.id}", connection=connection).call(int, 1)
                connection.execute(insert.format(job.id, job.attempt, job.holder))
                time.sleep(held_s)
            return job.attempt

        @self.app.job(timeout_s=WEDGE_LIMIT_S)
        async def wedge(job: Job, n: int) -> int:
            # Nothing can end what blocks the loop, but the end of its process.
            sink(job.id, job.attempt)
            if blocks and job.failures == 0:
                time.sleep(30)  # that is the fault
            return job.attempt

        @self.app.batch_job(batch_max=20)
        async def parcel(items: Sequence[BatchItem[int, int]]) -> None:
            for item in items:
                sink(item.id, item.attempt)
                if item.value % 10 == 0 and item.failures == 0:
                    item.retry(reason="once")
                else:
                    item.succeed(item.attempt)

        @self.app.job(exclusive=lambda n: f"turn {n % 4}")
        async def turn(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(TURN_S)
            return _at_last(job, n)

        @self.app.job(exclusive=lambda n: f"strict {n % 3}", strict=True)
        async def strict(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(TURN_S)
            return _at_last(job, n)

        @self.app.job(exclusive=lambda n: f"pair {n % 2}", exclusive_at_once=2)
        def pair(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            time.sleep(TURN_S)
            return job.attempt

        @self.app.job(limits="metered")
        async def metered(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(TURN_S)
            return job.attempt

        @self.app.job(exclusive=lambda n: f"both {n % 2}", limits="metered")
        async def both(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(TURN_S)
            return _at_last(job, n)

        @self.app.job(queue="narrow")
        async def narrow(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(TURN_S)
            return job.attempt

        @self.app.job
        async def heavy(job: Job, n: int, load: str) -> str:
            sink(job.id, job.attempt)
            _check_load(n, load)
            await asyncio.sleep(0.05)
            return loaded(job.attempt)

        @self.app.job
        def heavy_plain(job: Job, n: int, load: str) -> str:
            sink(job.id, job.attempt)
            _check_load(n, load)
            return loaded(job.attempt)

        @self.app.job(affinity=lambda n: LABEL if n % 2 else "nobody's", affinity_wait_s=0.3)
        async def labelled(job: Job, n: int) -> int:
            # Of every other one the wait for its label ends, and anybody may run it.
            sink(job.id, job.attempt)
            await asyncio.sleep(0.01)
            return job.attempt

        @self.app.job(queue="narrow", exclusive=lambda n: f"turn {n % 4}")
        async def elsewhere(job: Job, n: int) -> int:
            # Its queue is paused at times, and then gives the turns it has of these keys to those of the other queue.
            sink(job.id, job.attempt)
            await asyncio.sleep(TURN_S)
            return job.attempt

        @self.app.job(share=lambda n: f"share {n % 5}")
        async def shared(job: Job, n: int) -> int:
            sink(job.id, job.attempt)
            await asyncio.sleep(0.005)
            return job.attempt

        @self.app.job(limits="fragile")
        async def fragile(job: Job, n: int) -> int:
            # Two failures close the limit, for whoever comes next, and a trial that fails closes it again.
            sink(job.id, job.attempt)
            return _at_last(job, n)

        self.labelled, self.shared, self.fragile, self.elsewhere = labelled, shared, fragile, elsewhere
        self.heavy, self.heavy_plain = heavy, heavy_plain
        self.turn, self.strict, self.pair = turn, strict, pair
        self.metered, self.both, self.narrow = metered, both, narrow
        self.pay, self.pay_plain, self.pay_again, self.parcel = pay, pay_plain, pay_again, parcel
        self.look, self.read, self.nap = look, read, nap
        self.limited, self.limited_plain, self.guarded, self.wedge = limited, limited_plain, guarded, wedge
        self.slow, self.slow_plain, self.long, self.doomed = slow, slow_plain, long, doomed


# Their effect is one row in the same commit as their success, and no other row.
TRANSACTIONAL = frozenset({"pay", "pay_plain", "pay_again", "guarded"})
# They end well whenever they are let: a failure, and a time limit that strikes them, is a fault of ours.
HEALTHY = frozenset(
    {
        "pay",
        "pay_plain",
        "look",
        "read",
        "nap",
        "slow",
        "slow_plain",
        "long",
        "limited",
        "limited_plain",
        "guarded",
        "pair",
        "metered",
        "narrow",
        "labelled",
        "shared",
        "elsewhere",
        *HEAVY,
    }
)


def arguments_of(kind: str, number: int) -> tuple[Any, ...]:
    """What a job of this kind is called with, beside nothing else that has the number."""
    return (number, loaded(number)) if kind in HEAVY else (number,)


def loaded(number: int) -> str:
    """The number as a text that is large enough for the store outside."""
    return f"{number} ".ljust(LOAD_BYTES, ".")


def number_in(value: object) -> object:
    """The number in a result, also in one that was large."""
    return int(value.partition(" ")[0]) if isinstance(value, str) else value


def _check_load(number: int, load: str) -> None:
    if load.rstrip("!") != loaded(number):
        raise Fail(f"these are not the arguments of {number}")


def _at_last(job: Job, n: int) -> int:
    """What is left of a job whose first attempt failed, of one in three."""
    if n % 3 == 0 and job.failures == 0:
        raise RuntimeError("once, while it had its turn")
    return job.attempt


async def _done(answer: Any) -> None:
    if inspect.isawaitable(answer):
        await answer
