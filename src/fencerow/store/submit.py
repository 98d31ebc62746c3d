"""Submitting jobs: plain, repeated after a lost answer, and under idempotency keys."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.db.statement import Steps, execute, first_column, operation, whole
from fencerow.errors import KeyConflict
from fencerow.model.job import KeyClaim, NewJob
from fencerow.store.submit_forms import Acceptance, as_document, as_lines, as_parameters

ROUNDS_MAX = 20  # of reserve and look; each loses only to somebody who won


class Submitted(msgspec.Struct, frozen=True, gc=False):
    """What a submit came to: the job's id, and whether an earlier submit had made it."""

    id: str
    replay: bool = False


@operation(alone=True, prepared=True)
def submit(jobs: Sequence[NewJob]) -> Steps[list[str]]:
    """Insert new jobs, all or none; returns their ids. An id that is live already is an integrity error.

    One statement. After an unknown outcome use `resubmit`, never this again: a job that ran and
    finished meanwhile would run a second time.
    """
    if len(jobs) == 1:
        yield from execute("submit_one", as_parameters(jobs[0]))
    else:
        yield from execute("submit", jobs=as_document(jobs))
    return [job.id for job in jobs]


@operation()
def submit_by_copy(jobs: Sequence[NewJob]) -> Steps[list[str]]:
    """`submit` for many jobs on PostgreSQL, on a connection of ours: several times as fast, a few round trips longer.

    COPY takes rows as they are, so the time they count from is asked first.
    """
    ((now_us, subscribed),) = yield from execute("before_copy")
    yield from execute("copy_jobs", lines=as_lines(jobs, Acceptance(whole(now_us), bool(subscribed))))
    return [job.id for job in jobs]


@operation(repeatable=True)
def resubmit(jobs: Sequence[NewJob]) -> Steps[list[str]]:
    """Insert those of the jobs that exist neither live nor finished; returns the ids that were inserted.

    May be repeated for as long as finished jobs are kept. The look at the finished ones is a second
    statement: the insert's own snapshot may be older than the move that finished the job.
    """
    inserted = first_column((yield from execute("resubmit", jobs=as_document(jobs))))
    withdrawn = set(first_column((yield from execute("withdraw", ids=inserted)))) if inserted else set()
    return [job_id for job_id in inserted if job_id not in withdrawn]


@operation(repeatable=True)
def submit_keyed(jobs: Sequence[NewJob], claims: Sequence[KeyClaim]) -> Steps[list[Submitted]]:
    """Insert jobs under idempotency keys (one claim per job, in the same order); returns one answer per job.

    Waits for a concurrent submit of the same key to commit or abort. May be repeated: a key that
    this very job id owns is its own, and once that job has ended it is not run again for as long as the key
    lives, even when retention has removed it. Keys are reserved in sorted order.

    Raises:
        KeyConflict: a key belongs to a job with another payload. Nothing is stored.
    """
    owners, ended = yield from _reserve(claims)
    fresh = [
        job
        for job, claim in zip(jobs, claims, strict=True)
        if owners[claim.scope, claim.key] == job.id and job.id not in ended
    ]
    if fresh:
        yield from resubmit(fresh).steps()
    return [
        Submitted(owners[claim.scope, claim.key], owners[claim.scope, claim.key] != job.id)
        for job, claim in zip(jobs, claims, strict=True)
    ]


def _reserve(claims: Sequence[KeyClaim]) -> Steps[tuple[dict[tuple[str, str], str], set[str]]]:
    """Reserve each key or find its owner: insert, look in a second statement, again if the owner is gone.

    Also returns which of the owners have ended while their keys still live.
    """
    by_key: dict[tuple[str, str], KeyClaim] = {}
    for claim in claims:
        first = by_key.setdefault((claim.scope, claim.key), claim)
        _refuse_other_payload(claim, first.job_id, first.fingerprint)
    owners: dict[tuple[str, str], str] = {}
    ended: set[str] = set()
    for _ in range(ROUNDS_MAX):
        missing = [by_key[pair] for pair in sorted(by_key) if pair not in owners]
        if not missing:
            return owners, ended
        wanted = msgspec.json.encode(missing).decode()
        for scope, key in (yield from execute("reserve_keys", keys=wanted)):
            owners[str(scope), str(key)] = by_key[str(scope), str(key)].job_id
        expired = False
        for scope, key, job_id, fingerprint, is_expired, has_ended in (
            yield from execute("read_keys", keys=wanted)
        ):
            pair = (str(scope), str(key))
            if pair in owners:
                continue
            if is_expired and str(job_id) != by_key[pair].job_id:
                expired = True
                continue
            _refuse_other_payload(by_key[pair], str(job_id), str(fingerprint))
            owners[pair] = str(job_id)
            if has_ended and not is_expired:
                ended.add(str(job_id))
        if expired:
            yield from execute("drop_expired_keys", keys=wanted)
    raise KeyConflict(
        "the idempotency keys changed hands too often to be reserved",
        f"{ROUNDS_MAX} rounds were lost to other submits",
        "submit again",
    )


def _refuse_other_payload(claim: KeyClaim, owner: str, fingerprint: str) -> None:
    if fingerprint != claim.fingerprint:
        raise KeyConflict(
            f"key {claim.key!r} in scope {claim.scope!r} already belongs to job {owner} with another payload",
            f"its fingerprint is {fingerprint[:16]}…, this payload's is {claim.fingerprint[:16]}…",
            "send the same payload to get that job, or use another key",
            job_id=owner,
            fingerprint=fingerprint,
        )
