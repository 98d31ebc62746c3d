"""Unique jobs: a submit under a key stores a job, finds the one that is there, or gives it what the new one says.

The key's row is locked first. What became of the job that it names is looked up in a later statement, and stands
nowhere else: no claim and no end writes anything for it, so jobs without a rule pay nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fencerow.core.model.state import FINAL
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store.attempts import read_fences
from fencerow.core.store.idempotency import Pair
from fencerow.core.store.known import refuse_other_work
from fencerow.db.run import Steps, as_int, execute, text_or_none
from fencerow.turns.gates import gates_of
from fencerow.unique.rules import claim_of
from fencerow.unique.uniting import (
    UNSTARTED,
    JobOfKey,
    Uniting,
    Unstarted,
    as_json,
    as_pairs,
    pair_of,
    row_of,
)

FINAL_STATES = frozenset(state.value for state in FINAL)


def settle_unique(unique: Sequence[Submission], *, own: Collection[str], again: bool) -> Steps[Uniting]:
    """Lock the keys, look at the jobs that they name, and decide: part of `submit_asked` and of `resubmit_asked`.

    Locks the unique keys, in sorted order, then the jobs that are to be replaced. Waits for whoever submits under one
    of these keys to commit or abort. `again`: what was stored before comes to what it came to then; what came to an
    existing job left nothing behind, and is decided anew.

    Raises:
        InvalidInput: one of the caller's own ids belongs to other work. Nothing is stored.
    """
    made = yield from _lock(unique)
    stored = yield from _stored(unique, own, again)
    # A row that was made just now for a job that was stored before names that one, as if it had been there.
    named = {pair for pair in map(pair_of, unique) if pair not in made or made[pair] in stored}
    holding = {pair_of(each) for each in unique if claim_of(each.job).rule.holds_owner}
    unstarted = yield from _hold(sorted(holding & named))
    owners, now_us = yield from _owners(sorted(named), unstarted, unique)
    for pair in named & made.keys():
        owners[pair].in_period = False  # it was not submitted under the key, so no period counts for it
    replaced = yield from _replaced(unique, owners, own, again)
    uniting = Uniting(made, owners, unstarted, now_us)
    for each in unique:
        job_id = each.job.id
        uniting.answers[job_id] = stored.get(job_id) or replaced.get(job_id) or uniting.decide(each)
    return uniting


def _lock(unique: Sequence[Submission]) -> Steps[dict[Pair, str]]:
    """Lock the keys; returns those whose rows were made for that, each with the first job that comes under it."""
    first = {pair_of(each): each for each in reversed(unique)}
    wanted = [row_of(first[pair]) for pair in sorted(first)]
    rows = yield from execute("lock_unique", wanted=as_json(wanted))
    return {(str(scope), str(key)): first[str(scope), str(key)].job.id for scope, key in rows}


def _hold(pairs: Sequence[Pair]) -> Steps[dict[str, Unstarted]]:
    """Lock the jobs of these keys that have not started, until the transaction ends: a claim leaves them alone."""
    if not pairs:
        return {}
    rows = yield from execute("hold_unique", pairs=as_pairs(pairs))
    return {
        str(row[0]): Unstarted(
            str(row[1]),
            str(row[2]),
            text_or_none(row[3]),
            text_or_none(row[4]),
            gates_of(text_or_none(row[5]), text_or_none(row[6])),
        )
        for row in rows
    }


def _owners(
    pairs: Sequence[Pair], unstarted: Mapping[str, Unstarted], unique: Iterable[Submission]
) -> Steps[tuple[dict[Pair, JobOfKey], int]]:
    """Whom the rows of these keys name, and how they stand now, and the time.

    A later statement than the locks: the snapshot of those is older than what the last holder of a lock has written.
    """
    if not pairs:
        return {}, 0
    now_us = 0
    owners: dict[Pair, JobOfKey] = {}
    for scope, key, job_id, first_us, in_period, state, attempt, now in (
        yield from execute("read_unique", pairs=as_pairs(pairs))
    ):
        owner = JobOfKey(str(job_id), as_int(first_us), bool(in_period), text_or_none(state))
        # One that expired between the two statements is ended, though it is locked.
        owner.held = owner.job_id in unstarted and state in UNSTARTED
        owner.untouched = owner.held and attempt == 0
        owners[str(scope), str(key)] = owner
        now_us = as_int(now)
    wants_finished = any(FINAL_STATES.intersection(claim_of(each.job).rule.states) for each in unique)
    gone = [owner for owner in owners.values() if owner.state is None]
    if gone and wants_finished:
        fences = yield from read_fences([owner.job_id for owner in gone]).steps()
        for owner in gone:
            fence = fences.get(owner.job_id)
            owner.state = None if fence is None else fence.state.value
    return owners, now_us


def _stored(
    unique: Sequence[Submission], own: Collection[str], again: bool
) -> Steps[dict[str, SubmitResult]]:
    """Those that were stored before, of jobs that may have been: each by the answer that it got then."""
    asked = [each.job for each in unique if again or each.job.id in own]
    if not asked:
        return {}
    known = yield from read_fences([job.id for job in asked]).steps()
    yield from refuse_other_work([job for job in asked if job.id in own and job.id in known])
    return {job_id: SubmitResult(job_id, replay=job_id in own) for job_id in known}


def _replaced(
    unique: Sequence[Submission], owners: Mapping[Pair, JobOfKey], own: Collection[str], again: bool
) -> Steps[dict[str, SubmitResult]]:
    """Those that have replaced the job of their key before."""
    asked = [each for each in unique if again or each.job.id in own]
    names = [owners[pair_of(each)].job_id for each in asked if pair_of(each) in owners]
    if not names:
        return {}
    submits = as_json([each.job.id for each in asked])
    rows = yield from execute("read_replaced", ids=names, submits=submits)
    return {str(submit): SubmitResult(str(owner), replay=True, replaced=True) for owner, submit in rows}
