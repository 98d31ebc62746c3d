"""Storing jobs that may have been stored before: under keys, or ids of the caller's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fencerow.core.db.run import Operation, Steps, operation
from fencerow.core.errors import InvalidInput
from fencerow.core.model.submission import Submission
from fencerow.core.store.known import is_same_work
from fencerow.core.store.submit import Submitted, resubmit, submit_keyed
from fencerow.core.store.unique import resubmit_unique, submit_unique
from fencerow.core.store.uniting import Unstored


def storing_once(once: Sequence[Submission], *, again: bool = False) -> Operation[list[Submitted]]:
    """Store them in one transaction, none of them twice, and say for each which job it is. `again`: they may have
    been stored before, as the answer was lost.

    Raises:
        KeyConflict: a key belongs to another payload. Nothing is stored.
        InvalidInput: an id of the caller's own belongs to other work. Nothing is stored.
    """
    if any(each.unique is not None for each in once):
        asked = [Unstored(each.job, each.key, each.unique, each.pack) for each in once]
        return (resubmit_unique if again else submit_unique)(asked, own=_own(once))
    return _submit_with_keys(once) if any(each.key is not None for each in once) else _submit_unkeyed(once)


@operation(repeatable=True)
def _submit_with_keys(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    """Keyed jobs, and others beside them, in one transaction."""
    keyed = [each for each in submissions if each.key is not None]
    claims = [each.key for each in keyed if each.key is not None]
    answers = yield from submit_keyed([each.job for each in keyed], claims, own=_own(keyed)).steps()
    beside = yield from _unkeyed([each for each in submissions if each.key is None])
    answered = iter(answers)
    others = iter(beside)
    return [next(others if each.key is None else answered) for each in submissions]


@operation(repeatable=True)
def _submit_unkeyed(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    """Jobs under ids of the caller's own, and others beside them, in one transaction."""
    return (yield from _unkeyed(submissions))


def _unkeyed(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    """Among them may be ids of the caller's own: they may have been stored, run and finished long ago."""
    if not submissions:
        return []
    own = _own(submissions)
    again = resubmit([each.job for each in submissions], own=own, known=bool(own))
    inserted = set((yield from again.steps()))
    return [
        Submitted(each.job.id, replay=each.own_id and each.job.id not in inserted) for each in submissions
    ]


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
        is_same_work(works[0], works[1]) and (one.key, one.unique) == (other.key, other.unique)
    )


def answered_each(
    submissions: Sequence[Submission], once: Sequence[Submission], answers: Sequence[Submitted]
) -> list[Submitted]:
    """An answer for each submission, where some stand there twice: the later ones are replays."""
    of_id = {each.job.id: answer for each, answer in zip(once, answers, strict=True)}
    first = {id(each) for each in once}
    return [
        of_id[each.job.id] if id(each) in first else Submitted(of_id[each.job.id].id, replay=True)
        for each in submissions
    ]
