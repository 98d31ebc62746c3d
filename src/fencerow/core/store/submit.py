"""Submitting jobs: plain, repeated after a lost answer, and under ids of the caller's own.

They travel in four forms: one by its columns, several of one template by arrays on PostgreSQL, others as a JSON
document or, if they are many, as lines of COPY. What several have in common is written once for each template.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from fencerow.core.model.ids import may_be_ours
from fencerow.core.model.job import NewJob, Template, instant
from fencerow.core.store.gating import gating
from fencerow.core.store.known import refuse_absent, refuse_other_work
from fencerow.core.store.stored import store_jobs
from fencerow.db.run import (
    AlikeParameters,
    CommonParameters,
    Operation,
    Statement,
    Steps,
    Tells,
    as_int,
    execute,
    execute_fresh,
    first_column,
    operation,
)

NONE: frozenset[str] = frozenset()
FREE_BYTES_MAX = 4 * 1024 * 1024  # of the arguments of jobs that are sent while gates are locked
NULL = r"\N"
BETWEEN = "\x01"
TEMPLATES_MAX = 128  # remembered at a time
# What the text form of COPY reserves, and what stands for it.
ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})

Told = Callable[[Sequence[NewJob]], object]
Row = tuple[object, ...]  # id, size and arguments; and what a wing says of one of which it says more


@operation(alone=True, prepared=True)
def submit(jobs: Sequence[NewJob]) -> Steps[list[str]]:
    """Insert new jobs, all or none; returns their ids. An id that is live already is an integrity error.

    One statement. After an unknown outcome use `resubmit`, never this again: a job that ran and
    finished meanwhile would run a second time. Delivered after the `resubmit` it is an integrity error too.
    """
    ids = [job.id for job in jobs]
    if len(jobs) == 1:
        assert not jobs[0].writes_more, "a job that writes more than its row is submitted by submit_gated"
        yield Statement("submit_one", as_parameters(jobs[0]), stores=ids)
    else:
        yield _of_document(jobs)
    return ids


def submit_one(job: NewJob, tells: Tells | None) -> Operation[None]:
    """`submit` for one job, as a program that submits one after the other makes it: nobody reads the answer."""
    assert not job.writes_more, "a job that writes more than its row is submitted by submit_gated"
    return _whole(Statement("submit_one", as_parameters(job), stores=(job.id,)), tells)


def submit_alike(jobs: Sequence[NewJob], tells: Tells | None = None) -> Operation[None]:
    """`submit` for jobs that are `are_alike`, on PostgreSQL; nobody reads the answer."""
    return _whole(Statement("submit_alike", as_arrays(jobs)), tells)


def _whole(statement: Statement, tells: Tells | None) -> Operation[None]:
    asking = partial(_asking, statement)
    return Operation("submit", asking, True, prepared=True, tells=tells, whole=statement)


def _asking(statement: Statement) -> Steps[None]:
    yield statement


@operation()
def submit_gated(jobs: Sequence[NewJob], *, told: Told | None = None) -> Steps[list[str]]:
    """`submit` for jobs of which some wait, until a wing queues them, or have terms: their wings write what they keep
    of them in the same transaction.

    `told`: the transaction is one of ours and has nothing else in it, so some may have their turn at once. It is told
    with the jobs as they were stored. Locks then what it takes to give turns, and waits for who gives some.
    """
    stored = jobs
    if told is not None and any(job.needs_turn for job in jobs):
        stored = yield from gating().placed(jobs)
        stored = (yield from gating().turned(stored)) if _are_small(stored) else stored
    ids = list((yield from store_jobs(stored, _insert(stored))))
    if told is not None:
        told(stored)
    return ids


@operation(alone=True, prepared=True)
def submit_with_turn(job: NewJob, *, told: Told) -> Steps[list[str]]:
    """`submit_gated` in one statement, for a job that `may_turn_alone`, on PostgreSQL. `told` as there."""
    ((has_turn, _),) = yield gating().alone(job, as_parameters(job))
    told([msgspec.structs.replace(job, has_turn=True) if has_turn else job])
    return [job.id]


def may_turn_alone(job: NewJob) -> bool:
    """Whether one statement stores it, with its turn or where it waits for that."""
    return job.needs_turn and job.args_bytes <= FREE_BYTES_MAX and gating().stands_alone(job)


def _insert(jobs: Sequence[NewJob]) -> Steps[list[str]]:
    statement = _of_document(jobs)
    yield statement
    return list(statement.stores)


def _of_document(jobs: Sequence[NewJob]) -> Statement:
    """PostgreSQL counts itself, and is told how many there are."""
    params = {"jobs": as_document(jobs), "count": len(jobs)}
    return Statement("submit", params, stores=[job.id for job in jobs])


@operation()
def submit_by_copy(jobs: Sequence[NewJob], *, told: Told | None = None) -> Steps[list[str]]:
    """`submit` for many jobs on PostgreSQL, on a connection of ours: several times as fast, a few round trips longer.

    COPY takes rows as they are, so the time they count from is asked first. `told` as in `submit_gated`: what may have
    its turn at once is inserted behind the COPY, so that nobody waits for a client that is still sending its rows.
    """
    ((now_us, subscribed),) = yield from execute("before_copy")
    acceptance = Acceptance(as_int(now_us), bool(subscribed))
    free: list[NewJob] = []
    if told is not None and any(job.needs_turn for job in jobs):
        jobs = yield from gating().placed(jobs)
        free = yield from _free(jobs)
    ahead = {job.id for job in free}
    rest = [job for job in jobs if job.id not in ahead] if free else jobs
    if rest:
        yield from store_jobs(rest, _copy(rest, acceptance))
    if free:
        free = yield from gating().turned_of_free(free)
        yield from store_jobs(free, _insert(free))
    if told is not None:
        told([*free, *rest])
    return [job.id for job in jobs]


def _free(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """None if they are too large to be sent again in one piece."""
    free = yield from gating().free(jobs)
    return free if _are_small(free) else []


def _are_small(jobs: Iterable[NewJob]) -> bool:
    """Whether they are soon sent, while gates are locked."""
    return sum(job.args_bytes for job in jobs) <= FREE_BYTES_MAX


def _copy(jobs: Sequence[NewJob], acceptance: Acceptance) -> Steps[list[str]]:
    gated = any(job.is_named for job in jobs)
    lines = as_lines(jobs, acceptance, gated=gated)
    ids = [job.id for job in jobs]
    if gated:
        yield Statement("copy_gated", {"lines": lines}, stores=ids)
    else:
        yield Statement("copy_jobs", {"lines": lines}, stores=ids)
    # As the text of an array: to look at each id once more for what to quote would cost a tenth of the whole submit.
    yield from execute("refuse_repeated", ids=f"{{{','.join(ids)}}}")
    return ids


@operation(repeatable=True)
def resubmit(jobs: Sequence[NewJob], *, own: Collection[str] = NONE, known: bool = True) -> Steps[list[str]]:
    """Insert those of the jobs that exist neither live nor finished; returns the ids that were inserted.

    May be repeated for as long as finished jobs are kept. The look at the finished ones is a second
    statement: the insert's own snapshot may be older than the move that finished the job. A `submit` of these ids
    that is still on its way is refused when it comes. With `known` false the ids were made for this very submit, so
    that nobody can have stored them but itself.

    Raises:
        InvalidInput: one of the caller's `own` ids belongs to other work. Nothing is stored.
    """
    inserted = yield from insert_absent(jobs, known, own)
    yield from refuse_other_work([job for job in jobs if job.id in own and job.id not in inserted])
    return [job.id for job in jobs if job.id in inserted]


def insert_absent(jobs: Sequence[NewJob], known: bool, own: Collection[str]) -> Steps[set[str]]:
    """Part of other operations, see `resubmit`: returns the ids that were inserted and not withdrawn.

    An id of the caller's own is left for a first submit to find only if it may be one of ours, submitted in vain.
    """
    return set((yield from store_jobs(jobs, _insert_and_withdraw(jobs, known, own), again=True)))


def _insert_and_withdraw(jobs: Sequence[NewJob], known: bool, own: Collection[str]) -> Steps[set[str]]:
    inserted = first_column((yield from execute("resubmit", jobs=as_document(jobs))))
    if len(inserted) < len(jobs):  # of the caller's own ids `refuse_other_work` looks what they are of
        there = {*inserted, *own}
        yield from refuse_absent([job.id for job in jobs if job.id not in there])
    if not inserted:
        return set()
    repeated = [job_id for job_id in inserted if job_id not in own or may_be_ours(job_id)] if known else []
    looked = execute_fresh("withdraw", needed=known, ids=inserted, repeated=repeated)
    return set(inserted).difference(first_column((yield from looked)))


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What the database says before a COPY: its time, and whether the ends of jobs are events."""

    now_us: int
    subscribed: bool


class Alike(msgspec.Struct):
    """Jobs of one template."""

    template: Template
    rows: list[Row]
    more: bool = False


def alike(jobs: Iterable[NewJob]) -> list[Alike]:
    """The jobs by their templates, in the order in which these first come."""
    found: dict[int, Alike] = {}
    for job in jobs:
        # By identity: comparing templates would cost as much as writing them.
        group = found.get(id(job.template))
        if group is None:
            group = found[id(job.template)] = Alike(job.template, [])
        if not job.is_named:
            group.rows.append((job.id, job.args_bytes, job.args))
        else:
            group.more = True
            group.rows.append((job.id, job.args_bytes, job.args, *gating().said(job)))
    return list(found.values())


# What all jobs of a template are submitted with. By identity: to compare templates costs more than this spares. The
# template is kept, so that no other is found by it.
_commons: dict[int, tuple[Template, CommonParameters]] = {}


def as_parameters(job: NewJob) -> AlikeParameters:
    """The parameters of `submit_one`."""
    params = _of_template(job.template)
    params["id"] = job.id
    params["args"] = job.args
    params["args_bytes"] = job.args_bytes
    params["more"] = gating().said_alone(job) if job.is_named else None
    return params


def _of_template(template: Template) -> AlikeParameters:
    """Those that are the same for all jobs of it."""
    known = _commons.get(id(template))
    if known is None:
        if len(_commons) >= TEMPLATES_MAX:
            _commons.clear()  # a program that makes one for each job
        known = _commons[id(template)] = template, CommonParameters(msgspec.structs.asdict(template), {})
    params = AlikeParameters(known[1].params)
    params.common = known[1]
    return params


def as_arrays(jobs: Sequence[NewJob]) -> AlikeParameters:
    """The parameters of `submit_alike`: the template's, and arrays as the text in which PostgreSQL reads them.

    JSON has no such control character anywhere, so the arguments are quoted in one go, not one by one.
    """
    args = (
        BETWEEN.join([job.args for job in jobs])
        .replace("\\", r"\\")
        .replace('"', r"\"")
        .replace(BETWEEN, '","')
    )
    params = _of_template(jobs[0].template)
    params["ids"] = f"{{{','.join([job.id for job in jobs])}}}"
    params["sizes"] = f"{{{','.join([str(job.args_bytes) for job in jobs])}}}"
    params["args"] = f'{{"{args}"}}'
    return params


def as_document(jobs: Iterable[NewJob]) -> str:
    """The document of `submit` and `resubmit`: templates, each with its jobs as [id, bytes, arguments, ...]."""
    document = [
        {**msgspec.to_builtins(group.template), "more": group.more, "jobs": group.rows}
        for group in alike(jobs)
    ]
    return msgspec.json.encode(document).decode()


def as_lines(jobs: Iterable[NewJob], acceptance: Acceptance, *, gated: bool = False) -> str:
    """The rows of `copy_jobs`, or of `copy_gated`, the columns in their order."""
    parts: dict[int, tuple[str, str]] = {}
    lines: list[str] = []
    for job in jobs:
        around = parts.get(id(job.template))
        if around is None:
            around = parts[id(job.template)] = _around(job.template, acceptance)
        more = _more(job) if gated else ""
        lines.append(f"{job.id}{around[0]}{job.args_bytes}\t{_field(job.args)}{around[1]}{more}\n")
    return "".join(lines)


def _more(job: NewJob) -> str:
    """The columns of `copy_gated` that `copy_jobs` has not."""
    place, *columns = gating().copied(job)
    return f"\t{_fields(('queued' if place is None else 'waiting', place, *columns))}"


def _around(template: Template, acceptance: Acceptance) -> tuple[str, str]:
    """The columns between id and size, and those after the arguments."""
    now_us = acceptance.now_us
    due_us = now_us + _us(template.delay_s) if template.run_at_us is None else template.run_at_us
    expires_us = None if template.expires_s is None else now_us + _us(template.expires_s)
    before = (
        template.queue, template.name, template.priority, instant(due_us), template.attempts_max,
        template.crashes_max, template.snoozes_max, template.timeout_s, instant(expires_us),
        template.retention_s, template.scope, template.key, instant(now_us), template.submitted_by,
    )  # fmt: skip
    after = (
        template.options, template.tags, template.metadata, template.headers, template.ephemeral,
        acceptance.subscribed,
    )  # fmt: skip
    return f"\t{_fields(before)}\t", f"\t{_fields(after)}"


def _fields(values: Iterable[object]) -> str:
    return "\t".join(NULL if value is None else _field(str(value)) for value in values)


def _field(text: str) -> str:
    if "\\" in text or "\n" in text or "\t" in text or "\r" in text:
        return text.translate(ESCAPES)
    return text


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
