"""What one look at the database sees for metrics: some short statements, each bounded, that lock no rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fencerow.core.store.decoding import whole_or_none
from fencerow.db.engine import Engine
from fencerow.db.run import Row, Steps, as_int, execute, operation
from fencerow.events.lag import Lag, lags
from fencerow.metrics.settings import MetricsSettings
from fencerow.relay.relays import Relay, listed

PATIENCE_S = 5.0  # of one statement, where the engine can end one; who asks waits for less
LANES_MAX = 2_000
FLOW_LATE_S = 60.0
FLOWS_COUNTED = 10_000
FLOWS_LOOKED_AT = 200  # the oldest: whether one stands still is asked of its jobs


@dataclass(slots=True)
class MetricsSeen:
    """What was found. Numbers of jobs are capped where `capped` says so, by queue and state.

    `flows`: how many are under way, ends that nobody has told, flows that stand still, and callbacks that were refused.
    """

    jobs: dict[tuple[str, str], int] = field(default_factory=dict)
    capped: set[tuple[str, str]] = field(default_factory=set)
    oldest_queued_s: dict[str, float] = field(default_factory=dict)
    oldest_running_s: dict[tuple[str, str], float] = field(default_factory=dict)
    paused_queues: list[str] = field(default_factory=list)
    paused_schedules: dict[str, int] = field(default_factory=dict)
    workers: int = 0
    late_workers: int = 0
    lags: list[Lag] = field(default_factory=list)
    relays: list[Relay] = field(default_factory=list)
    flows: tuple[int, int, int, int] = (0, 0, 0, 0)
    lock_waits: int | None = None
    oldest_snapshot_s: float | None = None

    def add(self, queue: str, state: str, jobs: int, jobs_max: int) -> None:
        """So many more of a queue and state were counted, one beyond `jobs_max` at most."""
        key = queue, state
        if jobs > jobs_max:
            self.capped.add(key)
        self.jobs[key] = self.jobs.get(key, 0) + min(jobs, jobs_max)


def look(engine: Engine, settings: MetricsSettings) -> MetricsSeen:
    """Ask once. The statements are read one after the other, so they may be some milliseconds apart.

    Raises:
        Unavailable, Busy and their kin: the database could not be asked, or not in time.
    """
    jobs_max = settings.metrics_jobs_max
    seen = engine.run(_jobs(jobs_max))
    seen.workers, seen.late_workers = engine.run(_workers())
    seen.lags = engine.run(lags())
    seen.relays = engine.run(listed())
    seen.flows = engine.run(_flows())
    if engine.traits.has_server:
        seen.lock_waits, seen.oldest_snapshot_s = engine.run(_lock_waits())
    return seen


@operation(repeatable=True, writes="", patience_s=PATIENCE_S)
def _jobs(jobs_max: int) -> Steps[MetricsSeen]:
    seen = MetricsSeen()
    bound = {"jobs_max": jobs_max}
    lanes = yield from execute("metrics_lanes", **bound, lanes_max=LANES_MAX)
    _add_queued(seen, lanes, jobs_max)
    _add_running(seen, (yield from execute("metrics_running", **bound)), jobs_max)
    waiting = yield from execute("metrics_waiting", **bound)
    for row in waiting:
        seen.add(str(row[0]), "waiting", as_int(row[1]), jobs_max)
    _cap_all(seen, "waiting", (as_int(row[1]) for row in waiting), jobs_max)
    for kind, name, number in (yield from execute("metrics_paused")):
        if kind == "queue":
            seen.paused_queues.append(str(name))
        else:
            seen.paused_schedules[str(name)] = as_int(number)
    return seen


def _add_queued(seen: MetricsSeen, rows: Iterable[Row], jobs_max: int) -> None:
    for name, first_us, now_us, due, later in rows:
        queue = str(name)
        seen.add(queue, "due", as_int(due), jobs_max)
        seen.add(queue, "later", as_int(later), jobs_max)
        age_s = max(0.0, (as_int(now_us) - as_int(first_us)) / 1e6)
        seen.oldest_queued_s[queue] = max(age_s, seen.oldest_queued_s.get(queue, 0.0))


def _add_running(seen: MetricsSeen, rows: Sequence[Row], jobs_max: int) -> None:
    for queue, job, jobs, first_us, now_us in rows:
        seen.add(str(queue), "running", as_int(jobs), jobs_max)
        claimed_us = whole_or_none(first_us)
        age_s = 0.0 if claimed_us is None else max(0.0, (as_int(now_us) - claimed_us) / 1e6)
        seen.oldest_running_s[str(queue), str(job)] = age_s
    _cap_all(seen, "running", (as_int(row[2]) for row in rows), jobs_max)


def _cap_all(seen: MetricsSeen, state: str, jobs: Iterable[int], jobs_max: int) -> None:
    """Where the bound is one of all queues together, each of them may have more."""
    if sum(jobs) > jobs_max:
        seen.capped |= {each for each in seen.jobs if each[1] == state}


@operation(alone=True, repeatable=True, writes="", reads="workers", patience_s=PATIENCE_S)
def _workers() -> Steps[tuple[int, int]]:
    ((alive, late),) = yield from execute("metrics_workers")
    return as_int(alive), as_int(late)


@operation(repeatable=True, writes="", patience_s=PATIENCE_S)
def _flows() -> Steps[tuple[int, int, int, int]]:
    """Flows under way, ends that nobody has told for a minute, flows that stand still, callbacks that were refused."""
    ((live, untold),) = yield from execute("count_flow_troubles", age_s=FLOW_LATE_S, limit=FLOWS_COUNTED)
    stuck = yield from execute("stuck_flows", age_s=FLOW_LATE_S, limit=FLOWS_LOOKED_AT, look=FLOWS_LOOKED_AT)
    refused = yield from execute("refused_callbacks", limit=FLOWS_LOOKED_AT)
    return as_int(live), as_int(untold), len(stuck), len(refused)


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def _lock_waits() -> Steps[tuple[int, float]]:
    """Sessions that wait for locks, and for how long the oldest transaction has held back the horizon."""
    ((sessions, oldest_us),) = yield from execute("metrics_lock_waits")
    return as_int(sessions), max(0, as_int(oldest_us)) / 1e6
