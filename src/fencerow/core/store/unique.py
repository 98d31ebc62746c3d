"""Unique jobs: a submit under a key stores a job, finds the one that is there, or gives it what the new one says.

The key's row is locked first. What became of the job that it names is looked up in a later statement, and stands
nowhere else: no claim and no end writes anything for it, so jobs without a rule pay nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from fencerow.core.db.run import (
    Steps,
    as_int,
    as_int_or_none,
    execute,
    operation,
    text_or_none,
)
from fencerow.core.model.job import NewJob
from fencerow.core.model.looked import Looked
from fencerow.core.model.state import FINAL
from fencerow.core.store.attempts import read_fences
from fencerow.core.store.gating import gating
from fencerow.core.store.known import refuse_other_work
from fencerow.core.store.submit import (
    NONE,
    Pair,
    Submitted,
    reserve,
    resubmit,
    store_fresh,
    submit_gated,
)
from fencerow.core.store.uniting import (
    UNSTARTED,
    JobOfKey,
    Uniting,
    Unstarted,
    Unstored,
    as_json,
    claim_of,
    pair_of,
    row_of,
)

FINAL_STATES = frozenset(state.value for state in FINAL)


class UniqueKey(msgspec.Struct, frozen=True):
    """A key under which submits find a job since `first_us`: until it has ended or started, as their rule says, or
    until `until_us`, whatever becomes of it. Instants are microseconds since 1970."""

    scope: str
    key: str
    first_us: int
    until_us: int | None


@operation()
def submit_unique(asked: Sequence[Unstored], *, own: Collection[str] = NONE) -> Steps[list[Submitted]]:
    """Store jobs of which some are unique, all or none; returns one answer per job, decided in their order.

    Locks idempotency keys, then the unique keys, each in sorted order, then the jobs that are to be replaced. Waits
    for whoever submits under one of these keys to commit or abort. `own`: the ids that the caller chose. After an
    unknown outcome use `resubmit_unique`.

    Raises:
        KeyConflict: an idempotency key belongs to a job with another payload. Nothing is stored.
        InvalidInput: one of the caller's own ids belongs to other work. Nothing is stored.
    """
    return (yield from _submitted(asked, own, again=False))


@operation(repeatable=True)
def resubmit_unique(asked: Sequence[Unstored], *, own: Collection[str] = NONE) -> Steps[list[Submitted]]:
    """`submit_unique` of what may have been stored before: of what was, it tells what it came to then.

    What came to an existing job left nothing behind, and is decided anew.
    """
    return (yield from _submitted(asked, own, again=True))


@operation(alone=True, repeatable=True, writes="")
def unique_keys_of(ids: Sequence[str]) -> Steps[dict[str, list[UniqueKey]]]:
    """The unique keys under which submits find these jobs: of a job mostly one, or none."""
    found: dict[str, list[UniqueKey]] = {}
    for job_id, scope, key, first_us, until_us in (yield from execute("unique_keys_of", ids=list(ids))):
        one = UniqueKey(str(scope), str(key), as_int(first_us), as_int_or_none(until_us))
        found.setdefault(str(job_id), []).append(one)
    return found


@operation(repeatable=True)
def purge_unique(after: Pair, *, limit: int) -> Steps[Looked[Pair]]:
    """Forget keys whose job is gone and whose period is over, among so many after this one.

    It goes on after ("", "") when that was the last. Locks such a row before it looks at its job once
    more: a DELETE that waited for a row would not look at other rows a second time. Locked ones are left for later.
    """
    rows = yield from execute("next_unique", scope=after[0], key=after[1], limit=limit)
    over = [(str(scope), str(key)) for scope, key, is_over in rows if is_over]
    gone = 0
    if over:
        locked = yield from execute("lock_over", pairs=_pairs(over))
        pairs = _pairs([(str(scope), str(key)) for scope, key in locked])
        gone = len((yield from execute("purge_unique", pairs=pairs)))
    last = (str(rows[-1][0]), str(rows[-1][1])) if len(rows) == limit else ("", "")
    return Looked(last, len(rows), gone)


def _submitted(asked: Sequence[Unstored], own: Collection[str], *, again: bool) -> Steps[list[Submitted]]:
    answers: dict[str, Submitted] = {}
    taken = yield from _keys_first(asked, answers)
    unique = [each for each in asked if each.unique is not None and each.job.id not in answers]
    uniting = yield from _decided(unique, own, again, answers)
    yield from _keys_to_the_existing(asked, answers, taken)
    jobs = {
        each.job.id: uniting.inserted.get(each.job.id, each.job)
        for each in asked
        if each.job.id in uniting.inserted or each.job.id not in answers
    }
    yield from _insert_all(asked, jobs, answers, taken, own, again)
    yield from uniting.write()
    return [answers.get(each.job.id) or Submitted(each.job.id) for each in asked]


# --- idempotency keys ----------------------------------------------------------------------------------


def _keys_first(asked: Iterable[Unstored], answers: dict[str, Submitted]) -> Steps[dict[Pair, str]]:
    """Answer those whose idempotency key has a job already; returns the keys that were reserved now."""
    keyed = [(each.job, each.key) for each in asked if each.key is not None]
    if not keyed:
        return {}
    reserved = yield from reserve([key for _, key in keyed])
    for job, key in keyed:
        owner = reserved.owners[key.scope, key.key]
        if owner != job.id or job.id in reserved.ended:
            answers[job.id] = Submitted(owner, owner != job.id)
    return {pair: reserved.owners[pair] for pair in reserved.new}


def _keys_to_the_existing(
    asked: Iterable[Unstored], answers: Mapping[str, Submitted], taken: dict[Pair, str]
) -> Steps[None]:
    """A key that was reserved for a job which is not stored belongs to the one that is there instead.

    That one's end does not know of the key, so that its lifetime counts from now.
    """
    given: list[dict[str, object]] = []
    for each in asked:
        if each.key is None or taken.get((each.key.scope, each.key.key)) != each.job.id:
            continue
        answer = answers.get(each.job.id)
        if answer is not None and answer.id != each.job.id:
            del taken[each.key.scope, each.key.key]
            given.append(
                {"scope": each.key.scope, "key": each.key.key, "was": each.job.id, "job_id": answer.id}
            )
    if given:
        yield from execute("give_keys", keys=as_json(given))


# --- unique keys ---------------------------------------------------------------------------------------


def _decided(
    unique: Sequence[Unstored], own: Collection[str], again: bool, answers: dict[str, Submitted]
) -> Steps[Uniting]:
    """Lock the keys, look at the jobs that they name, and decide."""
    if not unique:
        return Uniting({}, {}, {}, 0)
    made = yield from _lock(unique)
    stored = yield from _stored(unique, own, again)
    # A row that was made just now for a job that was stored before names that one, as if it had been there.
    named = {pair for pair in map(pair_of, unique) if pair not in made or made[pair] in stored}
    holding = {pair_of(each) for each in unique if claim_of(each).rule.holds_owner}
    unstarted = yield from _hold(sorted(holding & named))
    owners, now_us = yield from _owners(sorted(named), unstarted, unique)
    for pair in named & made.keys():
        owners[pair].in_period = False  # it was not submitted under the key, so no period counts for it
    replaced = yield from _replaced(unique, owners, own, again)
    uniting = Uniting(made, owners, unstarted, now_us)
    for each in unique:
        job_id = each.job.id
        answers[job_id] = stored.get(job_id) or replaced.get(job_id) or uniting.decide(each)
    return uniting


def _lock(unique: Sequence[Unstored]) -> Steps[dict[Pair, str]]:
    """Lock the keys; returns those whose rows were made for that, each with the first job that comes under it."""
    first = {pair_of(each): each for each in reversed(unique)}
    wanted = [row_of(first[pair]) for pair in sorted(first)]
    rows = yield from execute("lock_unique", wanted=as_json(wanted))
    return {(str(scope), str(key)): first[str(scope), str(key)].job.id for scope, key in rows}


def _hold(pairs: Sequence[Pair]) -> Steps[dict[str, Unstarted]]:
    """Lock the jobs of these keys that have not started, until the transaction ends: a claim leaves them alone."""
    if not pairs:
        return {}
    rows = yield from execute("hold_unique", pairs=_pairs(pairs))
    return {
        str(row[0]): Unstarted(
            str(row[1]),
            str(row[2]),
            text_or_none(row[3]),
            text_or_none(row[4]),
            gating().gates_of(text_or_none(row[5]), text_or_none(row[6])),
        )
        for row in rows
    }


def _owners(
    pairs: Sequence[Pair], unstarted: Mapping[str, Unstarted], unique: Iterable[Unstored]
) -> Steps[tuple[dict[Pair, JobOfKey], int]]:
    """Whom the rows of these keys name, and how they stand now, and the time.

    A later statement than the locks: the snapshot of those is older than what the last holder of a lock has written.
    """
    if not pairs:
        return {}, 0
    now_us = 0
    owners: dict[Pair, JobOfKey] = {}
    for scope, key, job_id, first_us, in_period, state, attempt, now in (
        yield from execute("read_unique", pairs=_pairs(pairs))
    ):
        owner = JobOfKey(str(job_id), as_int(first_us), bool(in_period), text_or_none(state))
        # One that expired between the two statements is ended, though it is locked.
        owner.held = owner.job_id in unstarted and state in UNSTARTED
        owner.untouched = owner.held and attempt == 0
        owners[str(scope), str(key)] = owner
        now_us = as_int(now)
    wants_finished = any(FINAL_STATES.intersection(claim_of(each).rule.states) for each in unique)
    gone = [owner for owner in owners.values() if owner.state is None]
    if gone and wants_finished:
        fences = yield from read_fences([owner.job_id for owner in gone]).steps()
        for owner in gone:
            fence = fences.get(owner.job_id)
            owner.state = None if fence is None else fence.state.value
    return owners, now_us


def _stored(unique: Sequence[Unstored], own: Collection[str], again: bool) -> Steps[dict[str, Submitted]]:
    """Those that were stored before, of jobs that may have been: each by the answer that it got then."""
    asked = [each.job for each in unique if again or each.job.id in own]
    if not asked:
        return {}
    known = yield from read_fences([job.id for job in asked]).steps()
    yield from refuse_other_work([job for job in asked if job.id in own and job.id in known])
    return {job_id: Submitted(job_id, replay=job_id in own) for job_id in known}


def _replaced(
    unique: Sequence[Unstored], owners: Mapping[Pair, JobOfKey], own: Collection[str], again: bool
) -> Steps[dict[str, Submitted]]:
    """Those that have replaced the job of their key before."""
    asked = [each for each in unique if again or each.job.id in own]
    names = [owners[pair_of(each)].job_id for each in asked if pair_of(each) in owners]
    if not names:
        return {}
    submits = as_json([each.job.id for each in asked])
    rows = yield from execute("read_replaced", ids=names, submits=submits)
    return {str(submit): Submitted(str(owner), replay=True, replaced=True) for owner, submit in rows}


# --- writing -------------------------------------------------------------------------------------------


def _insert_all(
    asked: Sequence[Unstored],
    jobs: Mapping[str, NewJob],
    answers: dict[str, Submitted],
    taken: Mapping[Pair, str],
    own: Collection[str],
    again: bool,
) -> Steps[None]:
    """Insert the new jobs, unique or not; those with an idempotency key that is theirs first."""
    keyed = {each.job.id: jobs[each.job.id] for each in asked if each.key is not None and each.job.id in jobs}
    if keyed:
        yield from store_fresh(keyed, taken, own)
    rest = [job for job_id, job in jobs.items() if job_id not in keyed]
    inserted = yield from _insert(rest, own, again)
    for job in rest:
        if job.id in own and job.id not in inserted:
            answers[job.id] = Submitted(job.id, replay=True)


def _insert(jobs: Sequence[NewJob], own: Collection[str], again: bool) -> Steps[set[str]]:
    """Returns the ids that were inserted."""
    if not jobs:
        return set()
    if again or any(job.id in own for job in jobs):
        known = any(job.id in own for job in jobs)
        return set((yield from resubmit(jobs, own=own, known=known).steps()))
    return set((yield from submit_gated(jobs).steps()))


def _pairs(pairs: Iterable[Pair]) -> str:
    return as_json([{"scope": scope, "key": key} for scope, key in pairs])
