"""Whether all that a plan names is there, and all that is there is named."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence

import msgspec

from fencerow.planning.checking import checked_text
from fencerow.planning.errors import InvalidPlan
from fencerow.planning.plan import ALL_QUEUES, JobPlan, Plan

NAMES_MAX = 200  # jobs, keys and limits of one plan, each
NAME_LENGTH_MAX = 100


def check_names(what: str, named: Mapping[str, msgspec.Struct]) -> None:
    """Not too many, and each can be shown.

    Raises:
        InvalidPlan: it is not so.
    """
    if len(named) > NAMES_MAX:
        raise InvalidPlan(f"the plan has {len(named)} {what}", f"at most {NAMES_MAX} are read", "join some")
    for name in named:
        checked_text(name, f"a name in {what}", NAME_LENGTH_MAX)


def check_that_all_is_named(plan: Plan) -> None:
    """What nobody names is a mistake: it would be left out of every sum without a word.

    Raises:
        InvalidPlan: a job names what is not there, or nobody names what is.
    """
    for job in plan.jobs:
        _check_job(plan, job)
    queues = {job.queue for job in plan.jobs}
    for group in plan.keys:
        _refuse_unnamed("key", group.name, {job.key for job in plan.jobs})
    for limit in plan.limits:
        if not limit.is_of_queues:
            _refuse_unnamed("limit", limit.name, {each for job in plan.jobs for each in job.limits})
        elif limit.queue:
            _refuse_unnamed("queue", limit.queue, queues)
    for queue in plan.workers.slots:
        if queue != ALL_QUEUES:
            _refuse_unnamed("queue", queue, queues)


def _check_job(plan: Plan, job: JobPlan) -> None:
    where = f"jobs.{job.name}"
    keys = [each.name for each in plan.keys]
    limits = {each.name: each for each in plan.limits if not each.is_of_queues}
    if job.key is not None and job.key not in keys:
        raise _unknown(where, "key", job.key, keys)
    for name in job.limits:
        if name not in limits:
            raise _unknown(where, "limit", name, list(limits))
        values = plan.values_of(limits[name])
        if isinstance(values, str) and values != job.key:
            own = "has no key of its own" if job.key is None else f"has the key {job.key}"
            each = "" if job.key is None else f', or values = "{job.key}" if each {job.key} has one'
            raise InvalidPlan(
                f"{where} names the limit {name}, which is per key",
                f"nobody says how many keys that has: it would be one for each {values}, and the job {own}",
                f"write values = 2 in [limits.{name}] if there are two{each}",
            )
    if plan.workers.pool_of(job.queue) not in plan.workers.slots:
        raise _unknown(where, "queue", job.queue, list(plan.workers.slots))


def _unknown(where: str, kind: str, name: str, known: Sequence[str]) -> InvalidPlan:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or sorted(known)
    told = f"the plan has {', '.join(close[:10])}" if close else "the plan has none"
    return InvalidPlan(f"{where} names the {kind} {ascii(name)[1:-1][:100]}", told, "correct one of the two")


def _refuse_unnamed(kind: str, name: str, named: Collection[str | None]) -> None:
    if name not in named:
        raise InvalidPlan(
            f"no job of the plan names the {kind} {ascii(name)[1:-1][:100]}",
            "it would count for nothing",
            f"name it in a job, or take the {kind} out",
        )
