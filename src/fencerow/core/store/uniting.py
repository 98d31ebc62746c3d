"""What a submit under a unique key comes to: decided by how the job of the key stands, one submit after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.model.packing import fingerprint
from fencerow.core.model.unique import UniqueClaim
from fencerow.core.store.submit import Pair, Submitted


class Unstored(msgspec.Struct, frozen=True):
    """One job that is to be stored, under its keys of both kinds. `pack`: its arguments as they are stored with the job
    of another id, where that matters."""

    job: NewJob
    key: KeyClaim | None = None
    unique: UniqueClaim | None = None
    pack: Callable[[str], bytes] | None = None


class UniqueAnswer(Enum):
    """What a submit under a unique key comes to."""

    INSERTED = "inserted"
    EXISTING = "existing"
    REPLACED = "replaced"


@dataclass(slots=True)
class JobOfKey:
    """The job that a key's row names. `state` is None if it is gone."""

    job_id: str
    first_us: int
    until_us: int | None
    state: str | None
    untouched: bool = False  # it waits, no attempt of it has started, and its row is locked
    new: bool = False  # it is of this very submit


@dataclass(slots=True)
class Unstarted:
    """A job that has not started, as it stood when its row was locked."""

    name: str
    args: str
    scope: str | None
    key: str | None
    gates: tuple[str, ...]


@dataclass(slots=True)
class ToWrite:
    """What is to be written: new jobs, jobs that others replace, what is noted of that, and keys with a new owner."""

    inserted: dict[str, NewJob] = field(default_factory=dict)
    replaced: dict[str, NewJob] = field(default_factory=dict)
    left_gates: set[str] = field(default_factory=set)
    notes: list[dict[str, object]] = field(default_factory=list)
    owned: dict[Pair, dict[str, object]] = field(default_factory=dict)


def answered(
    each: Unstored, owners: dict[Pair, JobOfKey], held: dict[str, Unstarted], now_us: int, decided: ToWrite
) -> Submitted:
    """Decide one submit by who owns its key, and note what that changes for those behind it."""
    pair, claim, owner = pair_of(each), claim_of(each), owners.get(pair_of(each))
    answer = decide(owner, claim, now_us)
    if owner is None or answer is UniqueAnswer.INSERTED:
        if owner is not None:
            decided.owned[pair] = row_of(each)
        decided.inserted[each.job.id] = each.job
        until_us = None if claim.rule.period_s is None else now_us
        owners[pair] = JobOfKey(each.job.id, now_us, until_us, "queued", untouched=True, new=True)
        return Submitted(each.job.id)
    if answer is UniqueAnswer.REPLACED:
        _replace(each, owner, held, now_us, decided)
    return Submitted(owner.job_id, replay=True, replaced=answer is UniqueAnswer.REPLACED)


def decide(owner: JobOfKey | None, claim: UniqueClaim, now_us: int) -> UniqueAnswer:
    """What a submit under a key comes to that this job owns."""
    rule = claim.rule
    if owner is None:
        return UniqueAnswer.INSERTED
    if rule.replaces:
        return UniqueAnswer.REPLACED if owner.untouched else UniqueAnswer.INSERTED
    if rule.period_s is not None:
        counts = owner.until_us is not None and (owner.new or owner.until_us > now_us)
    else:
        counts = owner.state in rule.states
    return UniqueAnswer.EXISTING if counts else UniqueAnswer.INSERTED


def _replace(
    each: Unstored, owner: JobOfKey, held: dict[str, Unstarted], now_us: int, decided: ToWrite
) -> None:
    """The owner becomes what this job says, under its own id and idempotency key."""
    was = _before(decided.inserted[owner.job_id]) if owner.new else held[owner.job_id]
    template = msgspec.structs.replace(each.job.template, scope=was.scope, key=was.key)
    job = msgspec.structs.replace(each.job, id=owner.job_id, template=template)
    if each.pack is not None:
        args = each.pack(owner.job_id)
        job = msgspec.structs.replace(job, args=args.decode(), args_bytes=len(args))
    if owner.new:
        decided.inserted[owner.job_id] = job
    else:
        decided.left_gates.update(was.gates)
        decided.replaced[owner.job_id] = _put_off(job, claim_of(each), owner.first_us, now_us)
        held[owner.job_id] = _before(job)
    detail: dict[str, object] = {"submit": each.job.id}
    if (was.name, was.args) != (template.name, job.args):
        detail["args_was"] = fingerprint(was.name, was.args.encode())
    decided.notes.append({"id": owner.job_id, "actor": template.submitted_by, "detail": detail})


def _before(job: NewJob) -> Unstarted:
    """A job of this very submit, for the one that replaces it."""
    template = job.template
    return Unstarted(template.name, job.args, template.scope, template.key, ())


def _put_off(job: NewJob, claim: UniqueClaim, first_us: int, now_us: int) -> NewJob:
    """The job due as late as its rule says, counted from now, and from the first submit at most."""
    rule = claim.rule
    if rule.put_off_s is None:
        return job
    due_us = min(now_us + _us(rule.put_off_s), first_us + _us(rule.put_off_max_s))
    template = msgspec.structs.replace(job.template, delay_s=0.0, run_at_us=due_us)
    return msgspec.structs.replace(job, template=template)


def claim_of(each: Unstored) -> UniqueClaim:
    assert each.unique is not None
    return each.unique


def pair_of(each: Unstored) -> Pair:
    claim = claim_of(each)
    return claim.scope, claim.key


def row_of(each: Unstored) -> dict[str, object]:
    claim = claim_of(each)
    return {
        "scope": claim.scope,
        "key": claim.key,
        "job_id": each.job.id,
        "period_s": claim.rule.period_s,
    }


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
