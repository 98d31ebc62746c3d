"""What attempts became, on its way to the database: one table says for each outcome all that depends on its kind.

A statement writes many outcomes of its kind at once, each under its own fence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from fencerow.core.model.outcome import (
    Crashed,
    Failed,
    Followed,
    Outcome,
    Released,
    Retried,
    Snoozed,
    Stopped,
    Succeeded,
    Suspended,
)
from fencerow.core.model.state import State
from fencerow.core.store.attempts import (
    Failure,
    FirstEnds,
    MovedAndMade,
    MovedJob,
    Requeue,
    Requeued,
    Stop,
    Success,
    fail,
    requeue,
    stop,
    succeed_alone,
    succeed_first,
)
from fencerow.core.store.following import FollowedSuccess, succeed_with_follow_ups
from fencerow.core.store.reap import Crash, Reclaimed, crash
from fencerow.core.store.suspending import SuspendedAttempt, Suspending, suspend
from fencerow.core.store.unmoved import fail_in_place
from fencerow.core.telemetry import Fact
from fencerow.db.run import Operation


class EndedAttempt(Protocol):
    """An attempt that has ended: its job's id and number, and what it became."""

    @property
    def key(self) -> tuple[str, int]: ...

    @property
    def outcome(self) -> Any: ...


Batch = Sequence[EndedAttempt]


class ConfirmedEnds(NamedTuple):
    """What a statement has confirmed, all by the ids of jobs. An id that is missing was refused by its guard."""

    ids: set[str]
    queued: list[Requeued]
    ended: list[str]  # of these somebody waits for the end
    failed: list[str]  # ended as failed, though their outcome alone did not say so
    had_turns: bool = False  # turns are free now, for the next that wait


@dataclass(frozen=True, slots=True)
class Writing:
    """A statement that writes outcomes: how it is made of them, and what its answer means."""

    write: Callable[[Batch, str], Operation[Any]]
    confirmed: Callable[[Any], ConfirmedEnds]


@dataclass(frozen=True, slots=True)
class OutcomeRule:
    """All that depends on the kind of an outcome.

    `kind` names the statement in `WRITINGS`. `states`: in one of them the job is found once the outcome is written.
    `is_lasting`: a database without it has lost something; a job that was released or crashed may be anywhere.
    """

    kind: str
    event: Fact
    states: frozenset[State]
    facts: Callable[[Any], dict[str, Any]]
    is_lasting: bool = True


def _successes(batch: Batch) -> list[Success]:
    return [Success(*each.key, each.outcome.result.decode()) for each in batch]


def _succeed(batch: Batch, holder: str) -> Operation[MovedAndMade]:
    return succeed_alone(_successes(batch), holder=holder)


def _succeed_first(batch: Batch, holder: str) -> Operation[FirstEnds]:
    return succeed_first(_successes(batch), holder=holder)


def _follow(batch: Batch, holder: str) -> Operation[MovedAndMade]:
    followed = [
        FollowedSuccess(Success(*each.key, each.outcome.result.decode()), each.outcome.submissions)
        for each in batch
    ]
    return succeed_with_follow_ups(followed, holder=holder)


def _failures(batch: Batch) -> list[Failure]:
    return [Failure(*each.key, each.outcome.error.to_json()) for each in batch]


def _fail(batch: Batch, holder: str) -> Operation[list[MovedJob]]:
    return fail(_failures(batch), holder=holder)


def _fail_in_place(batch: Batch, holder: str) -> Operation[list[MovedJob]]:
    return fail_in_place(_failures(batch), holder=holder)


def _stop(batch: Batch, holder: str) -> Operation[list[MovedJob]]:
    return stop([Stop(*each.key, _cancelled(each.outcome)) for each in batch], holder=holder)


def _crash(batch: Batch, holder: str) -> Operation[tuple[list[Reclaimed], list[MovedJob]]]:
    crashes = [Crash(*each.key, each.outcome.delay_s, each.outcome.reason) for each in batch]
    return crash(crashes, holder=holder)


def _requeue(batch: Batch, holder: str) -> Operation[list[Requeued]]:
    return requeue([_requeued(*each.key, each.outcome) for each in batch], holder=holder)


def _suspend(batch: Batch, holder: str) -> Operation[Suspending]:
    return suspend(
        [SuspendedAttempt(*each.key, _because(each.outcome.reason)) for each in batch], holder=holder
    )


def _requeued(job_id: str, attempt: int, outcome: Outcome) -> Requeue:
    """How the job goes back to its queue, and what that spends of its budgets."""
    match outcome:
        case Retried(delay_s, error):
            kind, failures, snoozes, detail = "retried", 1, 0, error.to_json()
        case Snoozed(delay_s, reason):
            kind, failures, snoozes, detail = "snoozed", 0, 1, _because(reason)
        case Released(reason, delay_s):
            kind, failures, snoozes, detail = "released", 0, 0, _because(reason)
        case _:
            raise AssertionError(f"{outcome!r} is no requeue")
    return Requeue(
        id=job_id,
        attempt=attempt,
        kind=kind,
        delay_s=delay_s,
        failures=failures,
        snoozes=snoozes,
        detail=detail,
    )


def _because(reason: str) -> str:
    return msgspec.json.encode({"reason": reason}).decode()


def _cancelled(outcome: Stopped) -> str:
    error = {"type": "Cancelled", "code": "cancelled", "message": outcome.reason}
    return msgspec.json.encode(error).decode()


def _when_moved(moved: list[MovedJob]) -> ConfirmedEnds:
    awaited = [job.id for job in moved if job.awaited]
    return ConfirmedEnds({job.id for job in moved}, [], awaited, [], any(job.had_turns for job in moved))


def _when_followed(answer: MovedAndMade) -> ConfirmedEnds:
    return _when_moved(answer.moved)._replace(queued=answer.made)


def _when_first(answer: FirstEnds) -> ConfirmedEnds:
    return ConfirmedEnds(set(answer.ids), answer.made, answer.awaited, [], answer.had_turns)


def _when_requeued(queued: list[Requeued]) -> ConfirmedEnds:
    return ConfirmedEnds({job.id for job in queued}, queued, [], [], any(job.waits for job in queued))


def _when_suspended(answer: Suspending) -> ConfirmedEnds:
    return ConfirmedEnds(set(answer.ids), answer.woken, [], [], answer.had_turns)


def _when_crashed(answer: tuple[list[Reclaimed], list[MovedJob]]) -> ConfirmedEnds:
    found, moved = answer
    return ConfirmedEnds(
        {job.id for job in found},
        [
            Requeued(job.id, job.queue, job.priority, job.run_at_us)
            for job in found
            if job.state is State.QUEUED
        ],
        [job.id for job in moved if job.awaited],
        [job.id for job in found if job.state is State.FAILED],
    )


def _nothing(_outcome: Outcome) -> dict[str, Any]:
    return {}


def _code(outcome: Failed) -> dict[str, Any]:
    return {"code": outcome.error.code}


def _delay(outcome: Retried | Snoozed) -> dict[str, Any]:
    return {"delay_s": outcome.delay_s}


def _reason(outcome: Released | Crashed) -> dict[str, Any]:
    return {"reason": outcome.reason}


WRITINGS: Mapping[str, Writing] = {
    "succeed": Writing(_succeed, _when_followed),
    # The same for jobs that have not ended before, as nearly all: what it refuses, `succeed` may take.
    "succeed_first": Writing(_succeed_first, _when_first),
    "follow": Writing(_follow, _when_followed),
    "fail": Writing(_fail, _when_moved),
    "stop": Writing(_stop, _when_moved),
    "crash": Writing(_crash, _when_crashed),
    "requeue": Writing(_requeue, _when_requeued),
    "suspend": Writing(_suspend, _when_suspended),
    # For a failure that cannot be moved to the finished jobs: it ends where it lies.
    "fail_in_place": Writing(_fail_in_place, _when_moved),
}

_QUEUED = frozenset({State.QUEUED, State.WAITING})

RULES: Mapping[type[Outcome], OutcomeRule] = {
    Succeeded: OutcomeRule("succeed", Fact.SUCCEEDED, frozenset({State.SUCCEEDED}), _nothing),
    Followed: OutcomeRule("follow", Fact.SUCCEEDED, frozenset({State.SUCCEEDED}), _nothing),
    Failed: OutcomeRule("fail", Fact.FAILED, frozenset({State.FAILED}), _code),
    Stopped: OutcomeRule("stop", Fact.STOPPED, frozenset({State.CANCELLED}), _nothing),
    Retried: OutcomeRule("requeue", Fact.RETRIED, _QUEUED, _delay),
    Snoozed: OutcomeRule("requeue", Fact.SNOOZED, _QUEUED, _delay),
    Suspended: OutcomeRule("suspend", Fact.SUSPENDED, _QUEUED, _nothing),
    Released: OutcomeRule("requeue", Fact.RELEASED, _QUEUED, _reason, is_lasting=False),
    Crashed: OutcomeRule(
        "crash",
        Fact.CRASHED,
        frozenset({State.QUEUED, State.WAITING, State.FAILED, State.CANCELLED}),
        _reason,
        is_lasting=False,
    ),
}
