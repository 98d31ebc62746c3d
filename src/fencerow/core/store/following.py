"""Follow-ups: jobs that are submitted in the transaction in which the attempt that asked for them succeeds."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.core.model.rules import needed
from fencerow.core.model.submission import Submission
from fencerow.core.store.attempts import MovedAndMade, Requeued, Success, succeed
from fencerow.core.store.storing import once_each, storing_once
from fencerow.core.store.workers import refuse_older
from fencerow.db.run import Steps, operation


class FollowedSuccess(msgspec.Struct, frozen=True):
    """A finished attempt with its result, and what is to follow it."""

    success: Success
    submissions: Sequence[Submission]


@operation()
def succeed_with_follow_ups(outcomes: Sequence[FollowedSuccess], *, holder: str) -> Steps[MovedAndMade]:
    """Store results, move the jobs to the finished ones, and submit what follows those that moved: all or nothing.

    What follows an attempt that lost its lease is not submitted. Repeating it moves and submits nothing more.

    Raises:
        OlderWorkers: a living worker would not keep what a follow-up asks for. Nothing is written.
        InvalidInput, KeyConflict: a follow-up is refused. Nothing is written.
    """
    moved = yield from succeed([each.success for each in outcomes], holder=holder).steps()
    follow = {each.success.id: each.submissions for each in outcomes}
    wanted = once_each([submission for job in moved for submission in follow[job.id]])
    if not wanted:
        return MovedAndMade(moved, [])
    yield from refuse_older(needed(each.job for each in wanted))
    answers = yield from storing_once(wanted).steps()
    made = [
        each.job for each, answer in zip(wanted, answers, strict=True) if answer.replaced or not answer.replay
    ]
    return MovedAndMade(moved, [_hint(job) for job in made])


def _hint(job: NewJob) -> Requeued:
    """For a wake-up; the time is this host's, for hints: it decides nothing."""
    template = job.template
    due_us = time.time_ns() // 1000 if template.run_at_us is None else template.run_at_us
    due_us += round(template.delay_s * 1e6)
    return Requeued(job.id, template.queue, template.priority, due_us, job.needs_turn)
