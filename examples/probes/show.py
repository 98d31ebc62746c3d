"""The show: what the prober does when things go well, and when they do not, told with numbers."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from examples.probes.base import PACE, REGISTRY, SCALE, WINDOWS, app, connected, make_tables
from examples.probes.checks import LIMITS_S, RATES
from examples.probes.outside import MANNERS
from examples.stage import WAIT_S, Worker, must, played, say, title, wait, worker
from fencerow import State
from fencerow.core.model.job import JobRecord, moment
from fencerow.core.store import store
from fencerow.errors import InvalidEntities, NoEntities
from fencerow.planning import drain_minutes, entities_max, headroom_minutes, load_minutes
from fencerow.schedules import ScheduleRecord
from fencerow.testing.clock import clock_of

SERVICE = "examples.probes.service:app"
QUEUES = "probes:20,global:1"
SLOTS = 20
KINDS = tuple(RATES)
SCHEDULES = (*KINDS, "count_providers")
UNFINISHED = (State.WAITING, State.QUEUED, State.RUNNING)
QUICK = [name for name, manner in MANNERS.items() if manner == "quick"]
ROUNDS = 3  # for each quick provider, all at once
HOUR_S = 3600
JITTER_S = 0.3  # between the start of a job and its request


class Show:
    """Seven scenes on one database. A number that is not what it should be ends it with exit code 1."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self) -> int:
        return played(self._scenes, lambda: app.engine.close())

    # --- scenes ------------------------------------------------------------------------------------

    def _scenes(self) -> None:
        self._begin()
        with self._worker("first") as first:
            self._everything_at_once()
            self._killed(first)
        with self._worker("second") as second:
            self._taken_over()
            self._registry_away()
            self._drained(second)
        self._outage()
        self._window()
        self._formulas()

    def _begin(self) -> None:
        title("Each provider gets its own rows")
        app.migrate()
        make_tables()
        app.declare_limits()
        app.schedules.reconcile()
        self._refreshed()
        rows = [row for row in app.schedules.listed(entities=True) if row.entity]
        must(len(rows) == len(KINDS) * len(MANNERS), f"there are {len(rows)} rows")
        say(f"{len(MANNERS)} providers, {len(KINDS)} kinds: {len(rows)} rows, each with its own time")
        for name in SCHEDULES:
            app.schedules.pause(name, reason="the show runs them by hand")
        row = app.schedules.get("upload", "amber")
        say(f"upload/amber: {row.in_words()}; next {_wall(row.fires(now(), 3))}")

    def _everything_at_once(self) -> None:
        title("Everything at once: one at a time at each provider, whatever its kind")
        for kind in KINDS:
            app.schedules.run(kind)
            for name in QUICK * ROUNDS:
                app.schedules.run(kind, name)
        self._until_idle()
        jobs, seen = self._jobs(), counts()
        most = {name: number for name, number in seen["most"].items() if name}
        must(set(most.values()) == {1}, f"at once at each provider: {most}")
        must(seen["most"][""] >= 4, f"only {seen['most']['']} at once in all")
        again = [job.id for job in jobs if job.attempt > 1]
        must(not again, f"these took a second attempt: {again}")
        say(f"{len(jobs)} probes; at one provider at once: {max(most.values())}; in all: {seen['most']['']}")
        for name in QUICK:
            arrived = seen["arrived"][name]
            least_s = (len(arrived) - 1) / PACE.count * PACE.per_s - JITTER_S
            must(arrived[-1] - arrived[0] >= least_s, f"{name} was asked too fast: {arrived}")
        say(f"at most {PACE.count:g} starts a second at each: the rate is kept")
        for name, manner in MANNERS.items():
            say(f"{name} ({manner}): {_told(self._outcomes(name))}")
        must(set(self._outcomes("flint")) <= {"timed out"}, "the silent one answered")
        ended = [
            job for job in jobs if job.state is State.FAILED and "grove" in str(app.client.get(job.id).args)
        ]
        must(len(ended) == len(KINDS), f"{len(ended)} probes at the dripping one ran out of their time")
        say(f"{len(ended)} probes at the dripping one were ended by the limit of their time, once each")

    def _killed(self, first: Worker) -> None:
        title("kill -9 while a provider is being probed")
        change(held="amber")
        app.schedules.run("upload", "amber")
        wait(lambda: counts()["here"].get("amber"), "the probe")
        app.schedules.run("retrieve", "amber")
        first.kill()
        change(held=None)
        wait(lambda: not counts()["here"]["amber"], "the end of the lost request")
        (behind,) = app.client.list_jobs(states=(State.WAITING,), limit=10)
        say(f"the worker is dead; {behind.name} at amber waits for its turn")

    def _taken_over(self) -> None:
        self._until_idle()
        upload_, retrieve_ = sorted(self._jobs()[:2], key=lambda job: job.id)
        ends = [(job.name.rsplit(".")[-1], job.state, job.attempt) for job in (upload_, retrieve_)]
        must(
            ends == [("upload", State.SUCCEEDED, 2), ("retrieve", State.SUCCEEDED, 1)],
            f"they ended as {ends}",
        )
        must(counts()["most"]["amber"] == 1, "two were at amber at once")
        say(
            "another worker takes it over when the lease is over; then the one behind it runs; never two at once"
        )

    def _registry_away(self) -> None:
        title("The registry is away")
        change(registry=503)
        must(self._refusal() is InvalidEntities, "an error of the registry was taken for a list")
        app.schedules.run("retrieve", "birch")
        self._until_idle()
        (job,) = self._jobs()[:1]
        must(job.state is State.FAILED, f"a probe without a registry {job.state.value}")
        say(
            "no row vanishes, and a probe without it is an error, neither a success nor the provider's failure"
        )
        change(registry=204)
        must(self._refusal() is NoEntities, "an empty list was believed")
        say("an empty list is not believed either")
        change(registry=200, blocked=["grove"])
        app.schedules.run("upload", "grove")
        self._until_idle()
        self._refreshed()
        rows = [row.entity for row in app.schedules.listed(entities=True) if row.entity]
        must("grove" not in rows and len(rows) == len(KINDS) * (len(MANNERS) - 1), f"rows: {rows}")
        must(len(self._outcomes("grove")) == 0, "a blocked provider was probed")
        say("one that is blocked is left out by the job that was made before, and loses its rows")

    def _drained(self, second: Worker) -> None:
        title("A deploy while the longest probe runs")
        change(held="birch")
        app.schedules.run("lifecycle", "birch")
        wait(lambda: counts()["here"].get("birch"), "the probe")
        second.terminate()
        wait(lambda: self._draining("second"), "the drain")
        change(held=None)
        code = second.ended(WAIT_S)
        (job,) = self._jobs()[:1]
        must((code, job.state, job.attempt) == (0, State.SUCCEEDED, 1), f"{code}, {job.state}, {job.attempt}")
        say("SIGTERM: the worker claims no more, waits for the probe, and goes; its result is there")

    def _outage(self) -> None:
        title("An hour in which nobody was there")
        change(manners=dict.fromkeys(MANNERS, "quick") | {"delta": "slow"})
        for name in SCHEDULES:
            app.schedules.resume(name)
        clock_of(app.engine).advance(HOUR_S)
        rows = [row for row in app.schedules.listed(entities=True) if row.entity]
        least = _due(rows, now_us())
        while app.schedules.tick():
            pass
        most = _due(rows, now_us())
        found = self._backlog = Counter(_kind(job) for job in self._jobs(UNFINISHED))
        must(
            all(least[kind] <= found[kind] <= most[kind] for kind in KINDS),
            f"{found}, by the formula {least}",
        )
        must(found["count_providers"] == 1, f"what is for all was made {found['count_providers']} times")
        say(f"who looks first makes up what was missed: {_told(found)}; what is for all, once")
        began = time.monotonic()
        asyncio.run(self._work())
        self._took_s = time.monotonic() - began
        must(counts()["most"]["amber"] == 1, "two were at amber at once")
        say(f"they are done after {self._took_s:.1f} s, at no provider two at once")

    def _window(self) -> None:
        title("A maintenance window")
        clock_of(app.engine).advance(
            _until_window_s(now_us() / 1e6)
        )  # on from where the last one was moved to
        while app.schedules.tick():
            pass
        jobs = self._jobs(UNFINISHED)
        early = [job.id for job in jobs if job.run_at_us < now_us()]
        must(bool(jobs) and not early, f"{len(early)} of {len(jobs)} would run in the window")
        for_all = sum(_kind(job) == "count_providers" for job in jobs)
        must(for_all <= 1, f"what is for all was made {for_all} times: also for a fire in the window")
        say(f"{len(jobs)} jobs wait until it ends at {_wall([jobs[0].run_at])}")
        say("what is for all makes none for a fire in it, and one for the latest that was missed before it")

    def _formulas(self) -> None:
        title("What it costs, beside the formulas")
        minutes = {kind: limit_s / SCALE / 60 for kind, limit_s in LIMITS_S.items()}
        planned = float(load_minutes(RATES, minutes))
        say(
            f"in production at most {planned:g} minutes of work in an hour at one provider: {_verdict(planned)}"
        )
        say(f"{SLOTS} slots suffice for {entities_max(SLOTS, planned)} providers")
        took = {kind: self._took(kind) for kind in KINDS}
        slowest = {kind: max(each) for kind, each in took.items()}
        backlog_s = sum(self._backlog[kind] / (len(MANNERS) - 1) * slowest[kind] for kind in KINDS)
        most = drain_minutes(backlog_s / 60, load_minutes(RATES, {k: s / 60 for k, s in slowest.items()}))
        most_s = float(most or 0) * 60
        must(most is not None, "what was measured can never catch up")
        pace_s = sum(self._backlog[kind] for kind in KINDS) / (len(MANNERS) - 1) / PACE.count * PACE.per_s
        say(f"measured, median: {', '.join(f'{k} {statistics.median(v):.2f} s' for k, v in took.items())}")
        say(f"the backlog of an hour takes the slowest at most {most_s:.1f} s, and its pace {pace_s:.1f} s")
        say(f"it took {self._took_s:.1f} s")
        example = float(load_minutes({"deal": 4, "retrieval": 6}, {"deal": 5, "retrieval": 2}))
        must((example, entities_max(100, example)) == (32, 187), "the known example comes out wrong")
        say(f"the known example: load {example:g}, {_verdict(example)}, 5 workers of 20 slots: 187 providers")

    # --- what the scenes are made of -------------------------------------------------------------------

    def _worker(self, name: str) -> AbstractContextManager[Worker]:
        return worker(SERVICE, QUEUES, name, self._folder)

    def _refreshed(self) -> None:
        for kind in KINDS:
            asyncio.run(app.schedules.arefresh(kind))

    def _refusal(self) -> type[Exception] | None:
        """How a refresh of the entities is refused; the rows must stay."""
        before = len(app.schedules.listed(entities=True))
        try:
            asyncio.run(app.schedules.arefresh("upload"))
        except (InvalidEntities, NoEntities) as error:
            must(len(app.schedules.listed(entities=True)) == before, "rows vanished")
            return type(error)
        return None

    def _jobs(self, states: Sequence[State] | None = None) -> list[JobRecord]:
        """The newest first."""
        return app.client.list_jobs(states=states, limit=1000)

    def _until_idle(self) -> None:
        wait(lambda: not app.client.list_jobs(states=UNFINISHED, limit=1), "the end of all jobs")

    def _draining(self, name: str) -> bool:
        return "stops (SIGTERM)" in (self._folder / f"{name}.log").read_text("utf-8")

    def _outcomes(self, provider: str) -> Counter[str]:
        return Counter(outcome for name, _, outcome, _ in _results() if name == provider)

    def _took(self, kind: str) -> list[float]:
        return [took_s for _, each, outcome, took_s in _results() if (each, outcome) == (kind, "succeeded")]

    async def _work(self) -> None:
        async with app, app.worker({"probes": SLOTS, "global": 1}, name="third"):
            while await app.client.alist_jobs(states=UNFINISHED, limit=1):
                await asyncio.sleep(0.02)


def _kind(job: JobRecord) -> str:
    return str(job.name).rsplit(".", 1)[-1]


def _due(rows: Sequence[ScheduleRecord], now: int) -> Counter[str]:
    """How many fires are due, by the formula: one for each interval since the row's time, at most ten."""
    due = Counter[str]()
    for row in rows:
        if row.next_us is not None and row.next_us <= now:
            due[row.name] += min(10, int((now - row.next_us) / 1e6 * RATES[row.name] / HOUR_S) + 1)
    return due


def _told(found: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(found.items())) or "nothing"


def _verdict(minutes: float) -> str:
    left = float(headroom_minutes(minutes))
    return f"{left:.0f} minutes are left to catch up" if left else "it can never catch up"


def _wall(instants: Sequence[datetime]) -> str:
    return ", ".join(f"{each:%H:%M}" for each in instants)


def _until_window_s(now_s: float) -> float:
    """How long until a minute into the first window."""
    hour, minute = map(int, WINDOWS[0].split("-")[0].split(":"))
    at = datetime.fromtimestamp(now_s, UTC)
    begins = at.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return ((begins - at).total_seconds() % 86_400) + 60


def _results() -> list[tuple[str, str, str, float]]:
    with connected() as db:
        return list(db.execute("SELECT provider, kind, outcome, took_s FROM results").fetchall())


def now() -> datetime:
    """The database's clock."""
    return moment(now_us())


def now_us() -> int:
    """The database's clock."""
    return app.engine.run(store.clock())


def counts() -> dict[str, Any]:
    """What the world outside has counted."""
    counted: dict[str, Any] = httpx.get(f"{REGISTRY}/counts", trust_env=False).json()
    return counted


def change(**settings: Any) -> None:
    """Change the world outside."""
    httpx.post(f"{REGISTRY}/change", json=settings, trust_env=False).raise_for_status()
