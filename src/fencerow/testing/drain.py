"""`drain`: runs everything that is due, here and now, until nothing is, and says what ran."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencerow.app import App
from fencerow.core.answering import answering
from fencerow.core.app.serving import carrying
from fencerow.core.config import CoreConfig
from fencerow.core.errors import InvalidInput
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.worker_labels import parsed_labels
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker.plain import Worker
from fencerow.db.service import loop_here
from fencerow.db.text import amount
from fencerow.testing.beside import Beside
from fencerow.testing.chores import do_chores
from fencerow.testing.errors import DrainUnfinished
from fencerow.testing.frozen import RealTimeLoop, is_frozen
from fencerow.testing.ran import Ran, check_all, told

ENDS = frozenset(
    {
        Fact.SUCCEEDED, Fact.FAILED, Fact.RETRIED, Fact.SNOOZED, Fact.SUSPENDED, Fact.RELEASED, Fact.STOPPED,
        Fact.CRASHED, Fact.LEASE_LOST,
    }
)  # fmt: skip
UNDELIVERED = frozenset({Fact.EVENT_FAILED, Fact.EVENT_PARKED})
TIME_PASSES_S = 0.005  # more than the resolution of any clock


@dataclass(frozen=True, slots=True)
class DrainWanted:
    """What is to be run: by a worker of which settings, from which queues; and what is left to others."""

    config: CoreConfig
    queues: Sequence[str]
    slots: int
    without: Collection[str]


@answering
def drain(
    app: App,
    *,
    queues: Sequence[str] | None = None,
    slots: int = 1,
    labels: Sequence[str] | None = None,
    without: Collection[str] = (),
    attempts_max: int = 1000,
    timeout_s: Seconds = 30.0,
    check: bool = False,
) -> list[Ran]:
    """Run all due jobs of these queues (by default those of the app's jobs), and the jobs that become due by this.

    A real worker runs them in this process, with every rule of the app. It also runs what is due by the database's
    clock: retries, jobs that wait for their turn or for a label, jobs of dead workers whose lease has run out. Then it
    delivers events, fires schedules that are due, asks for their entities, does the app's other chores, and runs the
    jobs that become due by this. It runs one job at a time, unless more `slots` are given. `labels` and `without` are
    those of `app.worker`: the labels that the worker carries, and the names of chores that it leaves to others. Returns
    the attempts in the order in which they ended; jobs that are due later stay. In async code use `adrain`.

    Raises:
        DrainUnfinished: jobs were still due after so many attempts or seconds; a running job was released.
        JobsDidNotSucceed: with `check`, when an attempt or a delivery failed or will be tried again.
        InvalidInput: called inside a running event loop; or a queue's name or a label cannot be used.
    """
    if loop_here() is not None:
        raise InvalidInput(
            "drain() was called inside a running event loop",
            "it would block the loop while the jobs run",
            "write `await adrain(app)` there",
        )
    wanted = _wanted(app, queues, slots, labels, without)
    with asyncio.Runner(loop_factory=RealTimeLoop if is_frozen() else None) as runner:
        return runner.run(_closing(app, wanted, attempts_max, timeout_s, check))


@answering
async def adrain(
    app: App,
    *,
    queues: Sequence[str] | None = None,
    slots: int = 1,
    labels: Sequence[str] | None = None,
    without: Collection[str] = (),
    attempts_max: int = 1000,
    timeout_s: Seconds = 30.0,
    check: bool = False,
) -> list[Ran]:
    """`drain` for async code: async handlers run on this event loop.

    Raises:
        InvalidInput: time stands still for this event loop, as freezegun lets it.
    """
    wanted = _wanted(app, queues, slots, labels, without)
    return await _drained(app, wanted, attempts_max, timeout_s, check)


def _wanted(
    app: App,
    queues: Sequence[str] | None,
    slots: int,
    labels: Sequence[str] | None,
    without: Collection[str],
) -> DrainWanted:
    served = sorted({job.queue for job in app.jobs.values()}) if queues is None else list(queues)
    return DrainWanted(carrying(app.config, labels), served, slots, without)


class Heard:
    """Listens to the worker, and stops it when it has run enough."""

    def __init__(self, attempts_max: int) -> None:
        self.ends: list[tuple[str, Mapping[str, Any]]] = []
        self.undelivered: list[str] = []
        self.stop: Callable[[], None] | None = None
        self._attempts_max = attempts_max

    def is_full(self) -> bool:
        """Whether it has run as many attempts as it may."""
        return len(self.ends) >= self._attempts_max

    def __call__(self, name: str, facts: Mapping[str, Any]) -> None:
        if name in ENDS and not self.is_full():
            self.ends.append((name, facts))
            if self.is_full() and self.stop is not None:
                self.stop()
        elif name in UNDELIVERED:
            self.undelivered.append(f"{facts['topic']} to group {facts['group']}: {name} ({facts['code']})")


async def _closing(
    app: App, wanted: DrainWanted, attempts_max: int, timeout_s: Seconds, check: bool
) -> list[Ran]:
    """`adrain` on an event loop that ends with it, and so do the connections made for it."""
    try:
        return await _drained(app, wanted, attempts_max, timeout_s, check)
    finally:
        await app.engine.aclose()


async def _drained(
    app: App, wanted: DrainWanted, attempts_max: int, timeout_s: Seconds, check: bool
) -> list[Ran]:
    timeout_s = in_seconds(timeout_s)
    heard = Heard(attempts_max)
    await _prepared(app)
    forget = app.telemetry.listen(heard)
    try:
        async with asyncio.timeout(timeout_s):
            quiet = await _until_quiet(app, wanted, heard)
    except TimeoutError:
        raise _unfinished(heard, f"{timeout_s:g} s") from None
    finally:
        forget()
    if not quiet:
        raise _unfinished(heard, amount(attempts_max, "attempt"))
    ran = await told(app, heard.ends)
    if check:
        check_all(ran, heard.undelivered)
    return ran


async def _prepared(app: App) -> None:
    """What a worker does before it starts; and make sure that time passes here, or no wait would ever end.

    Raises:
        InvalidInput: it stands still.
    """
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await asyncio.to_thread(app.check_or_create)
    await asyncio.to_thread(app.declare_limits)
    if loop.time() == began_s:
        await asyncio.to_thread(time.sleep, TIME_PASSES_S)
    if loop.time() == began_s:
        raise InvalidInput(
            "time stands still for this event loop",
            "what waits in it waits for ever, its time limits too; freezegun stops the clock that asyncio goes by",
            "write freeze_time(..., real_asyncio=True), or move the time of the database: `fencerow_clock`",
        )


async def _until_quiet(app: App, wanted: DrainWanted, heard: Heard) -> bool:
    """Jobs and chores in turn, as long as there is something; false when it was more than may be run."""
    beside = Beside(app.engine, app.config, app.telemetry)
    while True:
        before = len(heard.ends)
        await beside.reap()
        was_due = await _is_due(app, wanted, beside)
        if was_due:
            await _work(app, wanted, heard)
        if not heard.is_full():
            await do_chores(app, wanted.without)
        is_due = await _is_due(app, wanted, beside)
        if heard.is_full() or not is_due:
            return not is_due
        if was_due and len(heard.ends) == before:
            return True  # what is due may not start now: a limit of its queue, a maintenance window


async def _work(app: App, wanted: DrainWanted, heard: Heard) -> None:
    """One worker, without the chores: these have their turn when the jobs are done."""
    (middleware, *_) = [job.middleware for job in app.jobs.values()]
    worker = Worker(
        app.engine,
        app.handlers,
        wanted.queues,
        _brisk(wanted.config),
        app.telemetry,
        middleware,
        slots=wanted.slots,
        name="drain",
        ends_process=False,  # it is somebody's test
    )
    heard.stop = lambda: worker.request_stop(now=True)
    try:
        await worker.run(until_idle=True)
    finally:
        heard.stop = None


def _brisk(config: CoreConfig) -> CoreConfig:
    """Nothing but this process makes jobs, so an empty look means quiet; a handler is given no time to drag on."""
    return replace(config, poll_min_s=0.01, poll_max_s=0.05, shutdown_s=0.0)


async def _is_due(app: App, wanted: DrainWanted, beside: Beside) -> bool:
    """Whether a worker would find a job here."""
    await beside.give_turns()
    names = sorted(app.handlers)
    return await app.engine.arun(store.any_due(wanted.queues, names, parsed_labels(wanted.config.labels)))


def _unfinished(heard: Heard, after: str) -> DrainUnfinished:
    counts = Counter((facts["job"], name) for name, facts in heard.ends)
    most = ", ".join(
        f"{job} {outcome} {amount(count, 'time')}" for (job, outcome), count in counts.most_common(3)
    )
    return DrainUnfinished(
        f"jobs were still due after {after}",
        f"what ran most: {most}" if most else "no attempt has ended",
        "a job may submit itself again, be retried without a delay, or hang; or raise the bound",
    )
