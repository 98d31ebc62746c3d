"""Group commits of outcomes: what ends while one write is in flight is written with the next.

Outcomes stay here until the database has answered for each of them. A missing row is settled by
reading: locked by a stranger (try again), asked to be cancelled (stop it), ended or taken over (drop it).
After a lost reply it reads first as well: finishing is fenced, but a blind repeat would hide what happened.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from fencerow.db.engine import Engine
from fencerow.db.trouble import is_trouble
from fencerow.model.job import Fence
from fencerow.model.outcome import Failed, Outcome, Released, Retried, Snoozed, Stopped, Succeeded
from fencerow.model.retry import describe
from fencerow.model.state import State
from fencerow.store import store
from fencerow.store.finish import Moved, Requeue, Requeued
from fencerow.telemetry import Event, Telemetry
from fencerow.worker.attempt import Attempt

log = logging.getLogger("fencerow.worker")

BATCH_ROWS_MAX = 1000
BATCH_BYTES_MAX = 8 * 1024 * 1024
LOCKED_S = 0.05

EVENTS: dict[type[object], Event] = {
    Succeeded: Event.SUCCEEDED,
    Failed: Event.FAILED,
    Retried: Event.RETRIED,
    Snoozed: Event.SNOOZED,
    Released: Event.RELEASED,
    Stopped: Event.STOPPED,
}


KINDS: dict[type[object], str] = {Succeeded: "succeed", Failed: "fail", Stopped: "stop"}


@dataclass(eq=False, slots=True)
class Pending:
    """One outcome that the database has not confirmed."""

    attempt: Attempt
    outcome: Outcome
    duration_s: float

    @property
    def id(self) -> str:
        return self.attempt.claimed.id

    @property
    def key(self) -> tuple[str, int]:
        """Two attempts of one job may be here at once, when a lost registration left the first behind."""
        claimed = self.attempt.claimed
        return claimed.id, claimed.attempt

    @property
    def kind(self) -> str:
        """Which statement writes it."""
        return KINDS.get(type(self.outcome), "requeue")


class Acker:
    """Writes outcomes; `on_done` is told of each attempt that is over, `on_ended` and `on_queued` what to announce."""

    def __init__(
        self,
        engine: Engine,
        telemetry: Telemetry,
        *,
        on_done: Callable[[Attempt, float], None],
        on_ended: Callable[[list[str]], None],
        on_queued: Callable[[list[Requeued]], None],
    ) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._on_done = on_done
        self._on_ended = on_ended
        self._on_queued = on_queued
        self._pending: list[Pending] = []
        self._writing: dict[tuple[str, int], Pending] = {}
        self._locked: list[Pending] = []  # behind a stranger's row lock: tried again alone, after a pause
        self._locked_until = 0.0
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._doubt = False

    @property
    def backlog(self) -> int:
        """Outcomes that are not confirmed."""
        return len(self._pending) + len(self._writing) + len(self._locked)

    def put(self, attempt: Attempt, outcome: Outcome, duration_s: float) -> None:
        """Take an outcome; returns at once."""
        self._pending.append(Pending(attempt, outcome, duration_s))
        self._idle.clear()
        self._changed.set()

    def committed(self, attempt: Attempt, moved: Moved, duration_s: float) -> None:
        """The handler's own transaction has written the success."""
        self._confirm(Pending(attempt, Succeeded(b""), duration_s))
        self._on_ended([moved.id] if moved.awaited else [])

    def forget(self, attempt: Attempt) -> None:
        """The job is not ours any more; nothing is written."""
        self._on_done(attempt, 0.0)

    async def flushed(self, timeout_s: float) -> bool:
        """Wait until everything is confirmed; false when that took too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def tick(self) -> float:
        """Write what has gathered; the loop's body. Waits until there is something."""
        if not self._writing:
            await self._gather()
        if self._doubt:
            await self._settled(list(self._writing.values()))
            self._doubt = False
        await self._write_all()
        return 0.0

    async def _gather(self) -> None:
        """Wait until something is to be written. What a stranger locks waits apart, so that it delays nothing else."""
        while not self._pending and time.monotonic() < self._locked_until:
            self._changed.clear()
            await self._changed_within(self._locked_until - time.monotonic())
        if self._locked and time.monotonic() >= self._locked_until:
            self._pending, self._locked = [*self._locked, *self._pending], []
        if not self._pending:
            self._idle.set()
            self._changed.clear()
            await self._changed.wait()
        batch, self._pending = self._pending[:BATCH_ROWS_MAX], self._pending[BATCH_ROWS_MAX:]
        self._writing = {each.key: each for each in batch}

    async def _changed_within(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _write_all(self) -> None:
        groups: dict[tuple[str, str], list[Pending]] = {}
        for each in self._writing.values():
            groups.setdefault((each.kind, each.attempt.holder), []).append(each)
        for (kind, holder), group in groups.items():
            for batch in _bounded(group):
                await self._write_group(kind, holder, batch)

    async def _write_group(self, kind: str, holder: str, batch: list[Pending]) -> None:
        try:
            moved = await self._write(kind, holder, batch)
        except Exception as error:
            if is_trouble(error):
                self._doubt = True
                raise
            await self._one_by_one(kind, holder, batch, error)
            return
        rest = self._confirm_all(batch, moved)
        if rest:
            self._wait_apart(await self._settled(rest))

    async def _write(self, kind: str, holder: str, batch: list[Pending]) -> set[str]:
        """Write one group under its fences; returns the ids that moved."""
        if kind == "requeue":
            requeued = await self._engine.arun(
                store.requeue([_requeue(each) for each in batch], holder=holder)
            )
            self._on_queued(requeued)
            return {job.id for job in requeued}
        if kind == "succeed":
            successes = [store.Success(*_fence(each), _result(each.outcome)) for each in batch]
            moved = await self._engine.arun(store.succeed(successes, holder=holder))
        elif kind == "fail":
            failures = [store.Failure(*_fence(each), _error(each.outcome)) for each in batch]
            moved = await self._engine.arun(store.fail(failures, holder=holder))
        else:
            stops = [store.Stop(*_fence(each), _detail(each.outcome)) for each in batch]
            moved = await self._engine.arun(store.stop(stops, holder=holder))
        self._on_ended([job.id for job in moved if job.awaited])
        return {job.id for job in moved}

    async def _one_by_one(self, kind: str, holder: str, batch: list[Pending], error: Exception) -> None:
        """The database refused a group: find the one that is at fault and let it fail alone."""
        if len(batch) > 1:
            for each in batch:
                await self._write_group(kind, holder, [each])
            return
        (only,) = batch
        log.error("the outcome of job %s was refused by the database: %s", only.id, error, exc_info=error)
        self._telemetry.counters.add("outcomes_refused")
        if isinstance(only.outcome, Failed) and only.outcome.error.code == "outcome_refused":
            self._drop(only)  # even the plain report was refused; the hard deadline will end the attempt
            return
        only.outcome = Failed(describe(error, "outcome_refused"))
        await self._write_group("fail", holder, [only])

    async def _settled(self, rest: list[Pending]) -> list[Pending]:
        """Read what became of outcomes that no statement confirmed; returns those that are still to be written."""
        try:
            fences = await self._engine.arun(store.read_fences([each.id for each in rest]))
        except Exception:
            self._doubt = True
            raise
        return [each for each in rest if self._is_open(each, fences.get(each.id))]

    def _wait_apart(self, rest: list[Pending]) -> None:
        for each in rest:
            del self._writing[each.key]
        if rest:
            self._locked += rest
            self._locked_until = time.monotonic() + LOCKED_S

    def _is_open(self, each: Pending, fence: Fence | None) -> bool:
        claimed = each.attempt.claimed
        if fence is not None and fence.state is State.RUNNING:
            if (fence.holder, fence.attempt) == (each.attempt.holder, claimed.attempt):
                if each.kind == "requeue" and fence.cancel_requested:
                    each.outcome = Stopped("a cancel was asked")
                elif each.kind == "stop" and not fence.cancel_requested:
                    each.outcome = Released("no cancel was asked")
                return True  # a stranger's lock does not last
        elif fence is not None and fence.attempt == claimed.attempt and _fits(each.outcome, fence.state):
            self._confirm(each)  # the reply was lost, the write was not
            self._on_ended([each.id] if fence.state is not State.QUEUED else [])
            return False
        log.warning(
            "job %s (%s) attempt %d is over for us: it is %s now",
            claimed.id,
            claimed.name,
            claimed.attempt,
            "gone" if fence is None else f"{fence.state}, attempt {fence.attempt}",
        )
        self._telemetry.counters.add("leases_lost")
        self._telemetry.emit(Event.LEASE_LOST, **facts(each.attempt))
        self._drop(each)
        return False

    def _confirm_all(self, batch: Iterable[Pending], moved: set[str]) -> list[Pending]:
        rest = []
        for each in batch:
            if each.id in moved:
                self._confirm(each)
            else:
                rest.append(each)
        return rest

    def _confirm(self, each: Pending) -> None:
        event = EVENTS[type(each.outcome)]
        self._telemetry.counters.add(event)
        if self._telemetry.is_heard:
            extra = _event_facts(each.outcome)
            self._telemetry.emit(event, **facts(each.attempt), duration_s=each.duration_s, **extra)
        self._drop(each)

    def _drop(self, each: Pending) -> None:
        self._writing.pop(each.key, None)
        self._on_done(each.attempt, each.duration_s)


def _bounded(group: Iterable[Pending]) -> Iterable[list[Pending]]:
    """Batches below the size that one statement should have, with no job twice: the answer names ids alone."""
    batch: list[Pending] = []
    ids: set[str] = set()
    size = 0
    for each in group:
        weight = len(each.outcome.result) if isinstance(each.outcome, Succeeded) else 512
        if batch and (size + weight > BATCH_BYTES_MAX or each.id in ids):
            yield batch
            batch, ids, size = [], set(), 0
        batch.append(each)
        ids.add(each.id)
        size += weight
    if batch:
        yield batch


def _fence(each: Pending) -> tuple[str, int]:
    return each.attempt.claimed.id, each.attempt.claimed.attempt


def _result(outcome: Outcome) -> str:
    assert isinstance(outcome, Succeeded)
    return outcome.result.decode()


def _error(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    return outcome.error.to_json()


def _detail(outcome: Outcome) -> str:
    assert isinstance(outcome, Stopped)
    return msgspec.json.encode({"type": "Cancelled", "code": "cancelled", "message": outcome.reason}).decode()


def _requeue(each: Pending) -> Requeue:
    job_id, attempt = _fence(each)
    match each.outcome:
        case Retried(delay_s, error):
            return Requeue(
                id=job_id,
                attempt=attempt,
                kind="retried",
                delay_s=delay_s,
                failures=1,
                detail=error.to_json(),
            )
        case Snoozed(delay_s, reason):
            detail = msgspec.json.encode({"reason": reason}).decode()
            return Requeue(
                id=job_id, attempt=attempt, kind="snoozed", delay_s=delay_s, snoozes=1, detail=detail
            )
        case Released(reason, wait_s):
            detail = msgspec.json.encode({"reason": reason}).decode()
            return Requeue(id=job_id, attempt=attempt, kind="released", delay_s=wait_s, detail=detail)
        case _:
            raise AssertionError(f"{each.outcome!r} is no requeue")


def _fits(outcome: Outcome, state: State) -> bool:
    """Whether the state is what this outcome would have led to."""
    match outcome:
        case Succeeded():
            return state is State.SUCCEEDED
        case Failed():
            return state is State.FAILED
        case Stopped():
            return state is State.CANCELLED
        case _:
            return state is State.QUEUED


def facts(attempt: Attempt) -> dict[str, Any]:
    claimed = attempt.claimed
    return {"job_id": claimed.id, "job": claimed.name, "queue": claimed.queue, "attempt": claimed.attempt}


def _event_facts(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Failed(error):
            return {"code": error.code}
        case Retried(delay_s, _) | Snoozed(delay_s, _):
            return {"delay_s": delay_s}
        case Released(reason, _):
            return {"reason": reason}
        case _:
            return {}
