"""Storing new jobs so that an answer which was lost never makes a second job, and telling the workers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from fencerow.core.db.run import Operation, Pause, Procedure, Steps, ask, operation
from fencerow.core.errors import Busy, InvalidInput, OutcomeUnknown, Unavailable
from fencerow.core.model.job import KeyClaim, NewJob, Template
from fencerow.core.model.wakeup import Queued, encode
from fencerow.core.store import store
from fencerow.core.store.known import is_same_work
from fencerow.core.store.submit import Submitted

T = TypeVar("T")

IDS_SHOWN = 3
COPY_ROWS_MIN = 500  # below, what COPY asks first costs more than it saves: decision 28 has both prices
HINT_US = 10_000  # a hint may name an earlier instant: a little coarser, those of a burst are one
FIRST_PAUSE_S = 0.05
PAUSE_S_MAX = 1.0


class Submission(msgspec.Struct, frozen=True, gc=False):
    """One job to store, checked already. `key` claims an idempotency key; `own_id`: the caller chose the id."""

    job: NewJob
    key: KeyClaim | None = None
    own_id: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether nobody can have stored it before, so that it may share an insert with strangers."""
        return self.key is None and not self.own_id


def storing(
    submissions: Sequence[Submission], patience_s: float, *, may_copy: bool = False
) -> Procedure[list[Submitted]]:
    """Store them in one transaction, all or none, and say for each which job it is.

    When the answer to the commit is lost, the same ids are submitted again for up to `patience_s` seconds.
    `may_copy`: the connection is one of ours, to PostgreSQL, so that many plain jobs may go by COPY.

    Raises:
        KeyConflict: a key belongs to another payload. Nothing is stored.
        InvalidInput: an id of the caller's own belongs to other work, here or among the jobs. Nothing is stored.
        OutcomeUnknown: the database did not come back in time. Submit again with the same ids, or look.
    """
    if all(each.is_plain for each in submissions):
        return (yield from _storing_plain([each.job for each in submissions], patience_s, may_copy))
    once = _once_each(submissions)
    stored = _submit_with_keys(once) if any(each.key is not None for each in once) else _submit_unkeyed(once)
    answers = yield from _insisting(stored, stored, _ids(once), patience_s)
    return answers if len(once) == len(submissions) else _answered_each(submissions, once, answers)


def due_lanes(templates: Iterable[Template], now_us: int) -> list[str]:
    """The wake-ups for jobs that are due: one per queue and priority. Workers find later ones in time themselves."""
    first: dict[tuple[str, int], int] = {}
    for template in templates:
        due_us = now_us if template.run_at_us is None else template.run_at_us
        if template.delay_s > 0 or due_us > now_us:
            continue
        lane = (template.queue, template.priority)
        hinted_us = due_us // HINT_US * HINT_US
        first[lane] = min(hinted_us, first.get(lane, hinted_us))
    return [encode(Queued(queue, priority, due_us)) for (queue, priority), due_us in first.items()]


def in_doubt(ids: Sequence[str], why: str) -> OutcomeUnknown:
    """The error for callers of a submit that may have been stored or not; `ids` are theirs and nobody else's."""
    shown = ", ".join(ids[:IDS_SHOWN]) + (f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else "")
    return OutcomeUnknown(
        f"it is unknown whether the submit of {shown} was stored",
        why,
        "submit again under the same id or key, or look the id up",
        job_ids=tuple(ids),
    )


def local_now_us() -> int:
    """This host's time: only for hints, never to decide anything."""
    return time.time_ns() // 1000


@operation(repeatable=True)
def _submit_with_keys(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    """Keyed jobs, and others beside them, in one transaction."""
    keyed = [each for each in submissions if each.key is not None]
    claims = [each.key for each in keyed if each.key is not None]
    answers = yield from store.submit_keyed([each.job for each in keyed], claims, own=_own(keyed)).steps()
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
    again = store.resubmit([each.job for each in submissions], own=own, known=bool(own))
    inserted = set((yield from again.steps()))
    return [
        Submitted(each.job.id, replay=each.own_id and each.job.id not in inserted) for each in submissions
    ]


def _own(submissions: Iterable[Submission]) -> set[str]:
    """The ids that the caller chose."""
    return {each.job.id for each in submissions if each.own_id}


def _once_each(submissions: Sequence[Submission]) -> list[Submission]:
    """The submissions without those that stand there twice: the same id with the same work is one job.

    Raises:
        InvalidInput: an id stands there for two kinds of work, or under two keys.
    """
    first: dict[str, Submission] = {}
    for each in submissions:
        if not _is_same(first.setdefault(each.job.id, each), each):
            raise InvalidInput(
                f"the id {each.job.id} stands twice in one submit, for different work",
                "the name, the arguments or the key differ, and an id stands for one job",
                "give each job an id of its own, or leave the ids out",
            )
    return list(first.values())


def _is_same(one: Submission, other: Submission) -> bool:
    works = [(each.job.template.name, each.job.args) for each in (one, other)]
    return one is other or (is_same_work(works[0], works[1]) and one.key == other.key)


def _answered_each(
    submissions: Sequence[Submission], once: Sequence[Submission], answers: Sequence[Submitted]
) -> list[Submitted]:
    """An answer for each submission, where some stand there twice: the later ones are replays."""
    of_id = {each.job.id: answer for each, answer in zip(once, answers, strict=True)}
    first = {id(each) for each in once}
    return [
        of_id[each.job.id] if id(each) in first else Submitted(of_id[each.job.id].id, replay=True)
        for each in submissions
    ]


def _storing_plain(jobs: Sequence[NewJob], patience_s: float, may_copy: bool) -> Procedure[list[Submitted]]:
    """Jobs that nobody can have stored before."""
    by_copy = may_copy and len(jobs) >= COPY_ROWS_MIN
    first = store.submit_by_copy(jobs) if by_copy else store.submit(jobs)
    ids = [job.id for job in jobs]
    yield from _insisting(first, store.resubmit(jobs), ids, patience_s)
    return [Submitted(job_id) for job_id in ids]


def _insisting(
    first: Operation[T], again: Operation[T], ids: Sequence[str], patience_s: float
) -> Procedure[T]:
    """Run `first`; when its outcome is unknown, run `again` until it is known or patience ends."""
    try:
        return (yield from ask(first))
    except OutcomeUnknown as error:
        doubt: Exception = error
    for pause_s in _pauses(patience_s):
        yield Pause(pause_s)
        try:
            return (yield from ask(again))
        except (OutcomeUnknown, Unavailable, Busy) as error:
            doubt = error
    raise in_doubt(
        ids,
        f"the connection broke during the commit, and {patience_s:g} s were not enough to ask again ({doubt})"[
            :400
        ],
    ) from doubt


def _pauses(patience_s: float) -> Iterator[float]:
    pause_s, deadline = FIRST_PAUSE_S, time.monotonic() + patience_s
    while (left_s := deadline - time.monotonic()) > 0:
        yield min(pause_s, left_s)
        pause_s = min(pause_s * 2, PAUSE_S_MAX)


def _ids(submissions: Sequence[Submission]) -> list[str]:
    return [each.job.id for each in submissions]
