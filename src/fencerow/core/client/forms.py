"""In what form plain jobs are stored that nobody can have stored before, and whom to wake for them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from functools import partial
from typing import Any

from fencerow.core.model.job import NewJob, are_alike
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.core.store.hints import hints_of, hints_of_alike
from fencerow.core.store.submit import may_turn_alone
from fencerow.db.run import Operation, Tells

COPY_ROWS_MIN = 500  # below, what COPY asks first costs more than it saves: decision 28 has both prices


class Form(Enum):
    """How plain jobs are stored. `ARRAYS`: all of them are alike. `TURN`: one job, which may have its turn at once."""

    ROWS = auto()
    ARRAYS = auto()
    COPY = auto()
    GATED = auto()
    TURN = auto()


def form_of(jobs: Sequence[NewJob], *, may_copy: bool) -> Form:
    """`may_copy`: the connection is one of ours, to PostgreSQL."""
    if len(jobs) == 1:
        if not jobs[0].writes_more:
            return Form.ROWS
        return Form.TURN if may_copy and may_turn_alone(jobs[0]) else Form.GATED
    if may_copy and are_alike(jobs):
        return Form.ARRAYS
    if may_copy and len(jobs) >= COPY_ROWS_MIN:
        return Form.COPY
    return Form.GATED if any(job.writes_more for job in jobs) else Form.ROWS


def first_of(jobs: Sequence[NewJob], form: Form, tells: Tells | None) -> Operation[Any]:
    """How jobs are stored that nobody can have stored before, and what is told with it. With `tells` the transaction is
    one of ours."""
    first = _inserting(jobs, form, tells)
    first.tells = None if form is Form.TURN else tells  # its answer says who is to be told
    return first


def first_at_once(
    submissions: Sequence[Submission], *, may_copy: bool
) -> tuple[Operation[Any], Tells | None]:
    """`first_of` and `tells_of` in a transaction of ours. One alone nearly always writes no more than its row."""
    job = submissions[0].job
    if len(submissions) > 1 or job.writes_more:
        jobs = [each.job for each in submissions]
        form = form_of(jobs, may_copy=may_copy)
        tells = tells_of(jobs, form)
        return first_of(jobs, form, tells), tells
    hints = hints_of_alike(job)
    tells = Tells(hints) if hints else None
    return store.submit_one(job, tells), tells


def _inserting(jobs: Sequence[NewJob], form: Form, tells: Tells | None) -> Operation[Any]:
    match form:
        case Form.ROWS:
            return store.submit(jobs)
        case Form.ARRAYS:
            return store.submit_alike(jobs)
        case Form.TURN:
            assert tells is not None, "who gives its turn is told of it, if nobody else is"
            return store.submit_with_turn(jobs[0], told=partial(_tell_stored, tells))
        case Form.COPY | Form.GATED:
            told = None if tells is None else partial(_tell_stored, tells)
            return (store.submit_by_copy if form is Form.COPY else store.submit_gated)(jobs, told=told)


def tells_of(jobs: Sequence[NewJob], form: Form) -> Tells | None:
    """Whom to wake, where that is known before: of plain jobs that one statement stores. Of those that need turns it is
    told once more when they are stored."""
    if len(jobs) >= COPY_ROWS_MIN and not any(job.needs_turn for job in jobs):
        return None
    hints = hints_of_alike(jobs[0]) if form is Form.ARRAYS or len(jobs) == 1 else hints_of(jobs)
    return Tells(hints) if hints else None


def _tell_stored(tells: Tells, jobs: Sequence[NewJob]) -> None:
    """Whom to wake for jobs as they were stored, of which some may have their turns."""
    tells.messages = hints_of(jobs)
