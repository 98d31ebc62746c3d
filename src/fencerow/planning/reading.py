"""From what a plan says to what it means. Everything that cannot be calculated with is refused here."""

from __future__ import annotations

from fractions import Fraction

from fencerow.core.app.options import QUEUE_LENGTH_MAX
from fencerow.core.model.retry import ATTEMPTS_MAX
from fencerow.limits.definition import AT_ONCE_MAX, Limit
from fencerow.limits.rate import Rate
from fencerow.planning.checking import checked_text, placed, seconds, share, whole
from fencerow.planning.errors import InvalidPlan
from fencerow.planning.formulas import exact
from fencerow.planning.naming import check_names, check_that_all_is_named
from fencerow.planning.plan import ALL_QUEUES, JobPlan, KeyGroup, OutagePlan, Plan, WorkerPlan
from fencerow.planning.rates import rate_per_hour
from fencerow.planning.written import WrittenJob, WrittenKeys, WrittenLimit, WrittenPlan
from fencerow.schedules.options import RULES, WHEN, SchedulePlan, planned

ENTITIES_MAX = 1_000_000
SLOTS_MAX = 1_000_000
PROCESSES_MAX = 100_000
ONE_RATE = ("rate", "interval_s", "cron", "arrivals")


def understood(written: WrittenPlan) -> Plan:
    """The plan that was written.

    Raises:
        InvalidPlan: something is missing, out of range, named by nobody, or contradicts something else.
    """
    for what, named in (("jobs", written.jobs), ("keys", written.keys), ("limits", written.limits)):
        check_names(what, named)
    if not written.jobs:
        raise InvalidPlan(
            "the plan has no jobs",
            "the load is that of its jobs",
            "add [jobs.NAME] with a rate and a duration",
        )
    plan = Plan(
        tuple(_job(name, each) for name, each in written.jobs.items()),
        tuple(_keys(name, each) for name, each in written.keys.items()),
        tuple(_limit(name, each) for name, each in written.limits.items()),
        _workers(written),
        _outage(written),
        seconds(written.horizon_s, "horizon_s"),
        {name: _values(name, each) for name, each in written.limits.items() if each.values is not None},
    )
    check_that_all_is_named(plan)
    return plan


def _job(name: str, written: WrittenJob) -> JobPlan:
    where = f"jobs.{name}"
    given = [each for each in ONE_RATE if getattr(written, each) is not None]
    if len(given) != 1:
        raise InvalidPlan(
            f"{where} has {' and '.join(given) or 'no rate'}",
            f"expected one of {', '.join(ONE_RATE)}",
            'write how often it comes, such as rate = 4 (an hour) or arrivals = "100/min"',
        )
    mean_s, p95_s = _durations(where, written)
    schedule = _schedule(where, written) if written.arrivals is None else None
    return JobPlan(
        name,
        _arrivals(where, written) if schedule is None else rate_per_hour(schedule.spec),
        mean_s,
        p95_s,
        checked_text(written.queue, f"{where}.queue", QUEUE_LENGTH_MAX),
        written.key,
        tuple(dict.fromkeys(written.limits)),
        share(written.failure_share, f"{where}.failure_share"),
        whole(written.attempts_max, f"{where}.attempts_max", 1, ATTEMPTS_MAX),
        schedule,
    )


def _durations(where: str, written: WrittenJob) -> tuple[Fraction, Fraction]:
    """The mean and the p95."""
    given = {
        "duration_s": written.duration_s,
        "mean_s": written.mean_s,
        "p95_s": written.p95_s,
    }
    found = {name: seconds(value, f"{where}.{name}") for name, value in given.items() if value is not None}
    if found.keys() == {"duration_s"}:
        return found["duration_s"], found["duration_s"]
    if found.keys() != {"mean_s", "p95_s"}:
        raise InvalidPlan(
            f"{where} has {' and '.join(found) or 'no duration'}",
            "expected duration_s (the most that an attempt takes), or mean_s with p95_s",
            "write them in seconds",
        )
    if found["p95_s"] < found["mean_s"]:
        raise InvalidPlan(
            f"{where} has a mean of {written.mean_s:g} s and a p95 of {written.p95_s:g} s",
            "a p95 below the mean is not careful: a few attempts take nearly all of the time",
            "correct them, or give duration_s, the most that an attempt takes",
        )
    return found["mean_s"], found["p95_s"]


def _schedule(where: str, written: WrittenJob) -> SchedulePlan:
    """What makes the jobs, with the rules and defaults that a schedule has."""
    if written.overlap == "queue" and written.key is not None:
        raise InvalidPlan(
            f"{where} has overlap 'queue' and a key",
            "with 'queue' the jobs wait by a key of their schedule, and a job has one key",
            "leave overlap out: they wait by the key that they have",
        )
    with placed(where):
        return planned(_of_schedule(written))


def _of_schedule(written: WrittenJob) -> dict[str, object]:
    """What only schedules have."""
    said = {name: getattr(written, name, None) for name in sorted(WHEN | RULES)}
    return {name: value for name, value in said.items() if value is not None}


def _arrivals(where: str, written: WrittenJob) -> Fraction:
    unfit = _of_schedule(written)
    if unfit:
        raise InvalidPlan(
            f"{where} has arrivals and {next(iter(unfit))}",
            "arrivals are submits at any time; only a schedule has the other",
            "leave one of them out",
        )
    with placed(where):
        rate = Rate.parse(written.arrivals)
    return exact(rate.count) * 3600 / exact(rate.per_s)


def _keys(name: str, written: WrittenKeys) -> KeyGroup:
    entities = whole(written.entities, f"keys.{name}.entities", 1, ENTITIES_MAX)
    return KeyGroup(name, entities, whole(written.at_once, f"keys.{name}.at_once", 1, AT_ONCE_MAX))


def _limit(name: str, written: WrittenLimit) -> Limit:
    where = f"limits.{name}"
    if written.rate is None and (written.burst != 1 or written.strict):
        raise InvalidPlan(
            f"{where} has burst or strict without a rate", "they belong to a rate", "give the rate too"
        )
    with placed(where):
        rate = None
        if written.rate is not None:
            rate = Rate.parse(written.rate, burst=written.burst, strict=written.strict)
        return Limit(name, at_once=written.at_once, rate=rate, per_key=written.per_key)


def _values(name: str, written: WrittenLimit) -> int | str:
    if not written.per_key:
        raise InvalidPlan(
            f"limits.{name} has values and is not per key",
            "a limit that is not per key has one turn for all",
            "write per_key = true, or leave values out",
        )
    if isinstance(written.values, int):
        return whole(written.values, f"limits.{name}.values", 1, ENTITIES_MAX)
    return str(written.values)


def _workers(written: WrittenPlan) -> WorkerPlan:
    found = written.workers
    if (found.slots is None) == (not found.queues):
        raise InvalidPlan(
            "workers has slots and queues" if found.queues else "workers has no slots",
            "expected workers.slots, which all queues share, or [workers.queues] with slots for each",
            "write one of them, for each worker process",
        )
    shared = {} if found.slots is None else {ALL_QUEUES: whole(found.slots, "workers.slots", 1, SLOTS_MAX)}
    own = {
        queue: whole(slots, f"workers.queues.{queue}", 1, SLOTS_MAX) for queue, slots in found.queues.items()
    }
    return WorkerPlan(whole(found.processes, "workers.processes", 1, PROCESSES_MAX), shared | own)


def _outage(written: WrittenPlan) -> OutagePlan | None:
    found = written.outage
    if found is None:
        return None
    lasts_s = seconds(found.lasts_s, "outage.lasts_s")
    starts_s = seconds(found.starts_s, "outage.starts_s", least=0.0)
    if starts_s + lasts_s >= seconds(written.horizon_s, "horizon_s"):
        raise InvalidPlan(
            f"the outage ends after {float(starts_s + lasts_s):g} s, and the plan after {written.horizon_s:g} s",
            "what comes after an outage is what a plan is asked for",
            "raise horizon_s, or shorten the outage",
        )
    within = found.drained_within_s
    return OutagePlan(
        lasts_s, starts_s, None if within is None else seconds(within, "outage.drained_within_s")
    )
