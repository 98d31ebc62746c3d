"""Storing jobs that may have been stored before, or come to others: under keys, ids of the caller's own, and by what
wings settle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import NewJob
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store.idempotency import Pair, give_keys, reserve, store_fresh
from fencerow.core.store.known import is_same_work
from fencerow.core.store.submit import resubmit, submit_gated
from fencerow.core.store.terms import is_settled, settle, settled_terms
from fencerow.db.run import Operation, Steps, operation


def storing_once(once: Sequence[Submission], *, again: bool = False) -> Operation[list[SubmitResult]]:
    """Store them in one transaction, none of them twice, and say for each which job it is. `again`: they may have
    been stored before, as the answer was lost.

    What is under keys, or ids of the caller's own, is looked up each time; so it may be repeated from the first on.
    What a wing settles may not: it would find its own job.

    Raises:
        KeyConflict: a key belongs to another payload. Nothing is stored.
        InvalidInput: an id of the caller's own belongs to other work. Nothing is stored.
    """
    first = not again and any(is_settled(each.job) for each in once)
    return submit_asked(once) if first else resubmit_asked(once)


@operation()
def submit_asked(asked: Sequence[Submission]) -> Steps[list[SubmitResult]]:
    """Store jobs under keys, ids of the caller's own or terms that wings settle, all or none; returns one answer for
    each, decided in their order. Among them may be plain ones.

    Locks idempotency keys, in sorted order, then what wings lock, each in theirs. Waits for whoever submits under one
    of these to commit or abort. After an unknown outcome use `resubmit_asked`.

    Raises:
        KeyConflict: a key belongs to a job with another payload. Nothing is stored.
        InvalidInput: one of the caller's own ids belongs to other work, or to another key. Nothing is stored.
    """
    return (yield from _stored(asked, again=False))


@operation(repeatable=True)
def resubmit_asked(asked: Sequence[Submission]) -> Steps[list[SubmitResult]]:
    """`submit_asked` of what may have been stored before: of what was, it tells what it came to then.

    A key that this very job id owns is its own, and once that job has ended it is not run again for as long as the key
    lives, even when retention has removed it. An id of the caller's own that has ended, and whose key's lifetime is
    over, does not take the key again. What came to an existing job left nothing behind, and is decided again.
    """
    return (yield from _stored(asked, again=True))


def _stored(asked: Sequence[Submission], *, again: bool) -> Steps[list[SubmitResult]]:
    """Keys, then what wings settle, then the rows, then what wings write of what they settled."""
    own = _own(asked)
    answers: dict[str, SubmitResult] = {}
    taken = yield from _keys_first(asked, answers)
    left = [each for each in asked if each.job.id not in answers]
    settled = yield from settle(left, own=own, again=again)
    new: dict[str, NewJob] = {}
    for each in settled:
        answers.update(each.answers)
        new.update(each.inserted)
    yield from _keys_to_the_existing(asked, answers, taken)
    jobs = {
        each.job.id: new.get(each.job.id, each.job)
        for each in left
        if each.job.id in new or each.job.id not in answers
    }
    yield from _insert_all(asked, jobs, answers, taken, own, again)
    for each in settled:
        yield from each.write()
    return [answers.get(each.job.id) or SubmitResult(each.job.id) for each in asked]


def _keys_first(asked: Iterable[Submission], answers: dict[str, SubmitResult]) -> Steps[dict[Pair, str]]:
    """Answer those whose idempotency key has a job already; returns the keys that were reserved now."""
    keyed = [(each.job, each.key) for each in asked if each.key is not None]
    if not keyed:
        return {}
    reserved = yield from reserve([key for _, key in keyed])
    for job, key in keyed:
        owner = reserved.owners[key.scope, key.key]
        if owner != job.id or job.id in reserved.ended:
            answers[job.id] = SubmitResult(owner, owner != job.id)
    return {pair: reserved.owners[pair] for pair in reserved.new}


def _keys_to_the_existing(
    asked: Iterable[Submission], answers: Mapping[str, SubmitResult], taken: dict[Pair, str]
) -> Steps[None]:
    """A key that was reserved for a job which is not stored belongs to the one that is there instead."""
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
    yield from give_keys(given)


def _insert_all(
    asked: Sequence[Submission],
    jobs: Mapping[str, NewJob],
    answers: dict[str, SubmitResult],
    taken: Mapping[Pair, str],
    own: Collection[str],
    again: bool,
) -> Steps[None]:
    """Insert the new jobs; those with an idempotency key that is theirs first."""
    keyed = {each.job.id: jobs[each.job.id] for each in asked if each.key is not None and each.job.id in jobs}
    if keyed:
        yield from store_fresh(keyed, taken, own)
    rest = [job for job_id, job in jobs.items() if job_id not in keyed]
    inserted = yield from _insert(rest, own, again)
    for job in rest:
        if job.id in own and job.id not in inserted:
            answers[job.id] = SubmitResult(job.id, replay=True)


def _insert(jobs: Sequence[NewJob], own: Collection[str], again: bool) -> Steps[set[str]]:
    """Returns the ids that were inserted."""
    if not jobs:
        return set()
    if again or any(job.id in own for job in jobs):
        known = any(job.id in own for job in jobs)
        return set((yield from resubmit(jobs, own=own, known=known).steps()))
    return set((yield from submit_gated(jobs).steps()))


def _own(submissions: Iterable[Submission]) -> set[str]:
    """The ids that the caller chose."""
    return {each.job.id for each in submissions if each.own_id}


def once_each(submissions: Sequence[Submission]) -> list[Submission]:
    """The submissions without those that stand there twice: the same id with the same work is one job.

    Raises:
        InvalidInput: an id stands there for two kinds of work, or under two keys.
    """
    first: dict[str, Submission] = {}
    for each in submissions:
        if not _is_same(first.setdefault(each.job.id, each), each):
            raise InvalidInput(
                f"the id {each.job.id} stands twice in one submit, for different work",
                "the name, the arguments or the key differ, but an id belongs to one job",
                "give each job an id of its own, or leave the ids out",
            )
    return list(first.values())


def _is_same(one: Submission, other: Submission) -> bool:
    works = [(each.job.template.name, each.job.args) for each in (one, other)]
    return one is other or (
        is_same_work(works[0], works[1])
        and (one.key, settled_terms(one.job)) == (other.key, settled_terms(other.job))
    )


def answered_each(
    submissions: Sequence[Submission], once: Sequence[Submission], answers: Sequence[SubmitResult]
) -> list[SubmitResult]:
    """An answer for each submission, where some stand there twice: the later ones are replays."""
    of_id = {each.job.id: answer for each, answer in zip(once, answers, strict=True)}
    first = {id(each) for each in once}
    return [
        of_id[each.job.id] if id(each) in first else SubmitResult(of_id[each.job.id].id, replay=True)
        for each in submissions
    ]
