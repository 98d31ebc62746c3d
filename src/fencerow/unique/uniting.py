"""What a submit under a unique key comes to: decided by how the job of the key stands, one submit after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.core.model.packed import fingerprint
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store.gating import gating
from fencerow.core.store.idempotency import Pair
from fencerow.core.store.stored import store_jobs
from fencerow.core.store.submit import as_document
from fencerow.db.run import Steps, execute
from fencerow.unique.rules import UniqueClaim, claim_of

UNSTARTED = ("waiting", "queued")


class UniqueAnswer(Enum):
    """What a submit under a unique key comes to."""

    INSERTED = "inserted"
    EXISTING = "existing"
    REPLACED = "replaced"


@dataclass(slots=True)
class JobOfKey:
    """A job that counts under a key, or did. `state` is None if it is gone."""

    job_id: str
    first_us: int
    in_period: bool  # it counts whatever became of it
    state: str | None
    held: bool = False  # it waits, and its row is locked
    untouched: bool = False  # and no attempt of it has started
    new: bool = False  # it is of this very submit


@dataclass(slots=True)
class Unstarted:
    """A job that has not started, as it stood when its row was locked."""

    name: str
    args: str
    scope: str | None
    key: str | None
    gates: tuple[str, ...]


class Uniting:
    """Decides submits under unique keys one after the other, each by what those before it came to, and writes all of it
    at the end.

    The rows of the keys are locked by now. `made`: those that were made for this submit, each with the job that it
    names until then. `owners`: the jobs of before that rows name, `unstarted` those of them that are locked.
    """

    def __init__(
        self,
        made: Mapping[Pair, str],
        owners: Mapping[Pair, JobOfKey],
        unstarted: Mapping[str, Unstarted],
        now_us: int,
    ) -> None:
        self._made = made
        self._owners = dict(owners)
        self._unstarted = dict(unstarted)
        self._now_us = now_us
        self.answers: dict[str, SubmitResult] = {}
        self.inserted: dict[str, NewJob] = {}
        self._taken: dict[Pair, Submission] = {}  # keys of a new job, by the submit that stored it
        self._replaced: dict[str, NewJob] = {}
        self._left_gates: set[str] = set()
        self._notes: list[dict[str, object]] = []

    def decide(self, each: Submission) -> SubmitResult:
        """What this submit comes to."""
        owner = self._owners.get(pair_of(each))
        answer = decide(owner, claim_of(each.job))
        if owner is None or answer is UniqueAnswer.INSERTED:
            self._insert(each)
            return SubmitResult(each.job.id)
        if answer is UniqueAnswer.REPLACED:
            self._replace(each, owner)
        return SubmitResult(owner.job_id, replay=True, replaced=answer is UniqueAnswer.REPLACED)

    def write(self) -> Steps[None]:
        """Write what was decided but for the new jobs, which are inserted by now."""
        if self._replaced:
            # Whoever had a turn gives it up: its gates are looked at, and those of the job as it is now.
            yield from store_jobs(self._replaced.values(), self._write_replaced(), again=True)
            if self._left_gates:
                yield from gating().look_again(self._left_gates)
        if self._notes:
            yield from execute("note_replaced", notes=as_json(self._notes))
        if owned := self._owned():
            yield from execute("own_unique", owned=as_json(owned))

    def _write_replaced(self) -> Steps[list[str]]:
        yield from execute("replace_jobs", jobs=as_document(self._replaced.values()))
        return [job.id for job in self._replaced.values()]

    def _owned(self) -> list[dict[str, object]]:
        """The rows that do not name the job of their key yet. One that was made for a job of before names that one, and
        no period begins: nothing was stored."""
        named = [row_of(each) for pair, each in self._taken.items() if self._made.get(pair) != each.job.id]
        kept: list[dict[str, object]] = [
            {"scope": pair[0], "key": pair[1], "job_id": job_id, "period_s": None}
            for pair, job_id in self._made.items()
            if pair not in self._taken
        ]
        return [*named, *kept]

    def _insert(self, each: Submission) -> None:
        pair, in_period = pair_of(each), claim_of(each.job).rule.period_s is not None
        self._owners[pair] = JobOfKey(
            each.job.id, self._now_us, in_period, "queued", held=True, untouched=True, new=True
        )
        self._taken[pair] = each
        self.inserted[each.job.id] = each.job

    def _replace(self, each: Submission, owner: JobOfKey) -> None:
        """The owner becomes what this job says, under its own id and idempotency key."""
        was = _before(self.inserted[owner.job_id]) if owner.new else self._unstarted[owner.job_id]
        template = msgspec.structs.replace(each.job.template, scope=was.scope, key=was.key)
        job = msgspec.structs.replace(each.job, id=owner.job_id, template=template)
        if each.pack is not None:
            args = each.pack(owner.job_id)
            job = msgspec.structs.replace(job, args=args.decode(), args_bytes=len(args))
        if owner.new:
            self.inserted[owner.job_id] = job
        else:
            self._left_gates.update(was.gates)
            self._replaced[owner.job_id] = _put_off(job, claim_of(each.job), owner.first_us, self._now_us)
            self._unstarted[owner.job_id] = _before(job)
        detail: dict[str, object] = {"submit": each.job.id}
        if (was.name, was.args) != (template.name, job.args):
            detail["args_was"] = fingerprint(was.name, was.args.encode())
        self._notes.append({"id": owner.job_id, "actor": template.submitted_by, "detail": detail})


def decide(owner: JobOfKey | None, claim: UniqueClaim) -> UniqueAnswer:
    """What a submit under a key comes to that this job owns."""
    rule = claim.rule
    if owner is None:
        return UniqueAnswer.INSERTED
    if rule.replaces:
        return UniqueAnswer.REPLACED if owner.untouched else UniqueAnswer.INSERTED
    if rule.period_s is not None:
        counts = owner.in_period
    elif rule.holds_owner and owner.state in UNSTARTED:
        counts = owner.held and owner.state in rule.states  # one that nobody holds has started meanwhile
    else:
        counts = owner.state in rule.states
    return UniqueAnswer.EXISTING if counts else UniqueAnswer.INSERTED


def _before(job: NewJob) -> Unstarted:
    """A job of this very submit, for the one that replaces it."""
    template = job.template
    return Unstarted(template.name, job.args, template.scope, template.key, ())


def _put_off(job: NewJob, claim: UniqueClaim, first_us: int, now_us: int) -> NewJob:
    """The job due as late as its rule says, counted from now, and from the first submit at most.

    A first submit that lies ahead was written before the clock went back: how long ago that was nobody knows.
    """
    rule = claim.rule
    if rule.put_off_s is None:
        return job
    latest_us = now_us if first_us > now_us else first_us + _us(rule.put_off_max_s)
    due_us = min(now_us + _us(rule.put_off_s), latest_us)
    template = msgspec.structs.replace(job.template, delay_s=0.0, run_at_us=due_us)
    return msgspec.structs.replace(job, template=template)


def pair_of(each: Submission) -> Pair:
    """Its unique key with the scope."""
    claim = claim_of(each.job)
    return claim.scope, claim.key


def row_of(each: Submission) -> dict[str, object]:
    """The row that names its job under its key."""
    claim = claim_of(each.job)
    return {
        "scope": claim.scope,
        "key": claim.key,
        "job_id": each.job.id,
        "period_s": claim.rule.period_s,
    }


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def as_json(value: object) -> str:
    """A document that a statement reads."""
    return msgspec.json.encode(value).decode()


def as_pairs(pairs: Iterable[Pair]) -> str:
    """Keys with their scopes, as a document."""
    return as_json([{"scope": scope, "key": key} for scope, key in pairs])
