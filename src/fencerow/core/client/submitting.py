"""Storing new jobs so that an answer which was lost never makes a second job, and telling the workers.

Plain submits of one event loop go into one insert: those that arrive while one is under way go with the next. The first
goes at once; nobody waits for a timer.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary, proxy

from fencerow.core.client.base import ClientBase
from fencerow.core.db.apart import apart
from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Operation, Pause, Procedure, Tells, ask, joining
from fencerow.core.errors import DatabaseError, InvalidInput, OutcomeUnknown, StorageFull
from fencerow.core.model.job import NewJob
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store import store
from fencerow.core.store.hints import hints_of
from fencerow.core.store.storing import answered_each, once_each, storing_once
from fencerow.core.store.terms import is_settled
from fencerow.core.telemetry import Fact, Telemetry

if TYPE_CHECKING:
    from fencerow.core.client.fleet import Fleet

T = TypeVar("T")

PATIENCE_S = 5.0
IDS_SHOWN = 3
COPY_ROWS_MIN = 500  # below, what COPY asks first costs more than it saves: decision 28 has both prices
FIRST_PAUSE_S = 0.05
PAUSE_S_MAX = 1.0
GROUP_ROWS_MAX = 500
GROUP_BYTES_MAX = 4 * 1024 * 1024


# Given what a submit was refused with, and what was submitted, puts it right; false if it cannot.
Mend = Callable[[InvalidInput, Sequence[Submission]], Procedure[bool]]


class Submits(ClientBase):
    """A client as far as submits go."""

    def __init__(
        self,
        engine: Engine,
        *,
        actor: str | None = None,
        telemetry: Telemetry | None = None,
        ready: Callable[[], None] | None = None,
        patience_s: Seconds = PATIENCE_S,
    ) -> None:
        super().__init__(engine, actor=actor, ready=ready)
        self.telemetry = telemetry or Telemetry()
        self.patience_s = in_seconds(patience_s)
        self.mend: Mend | None = None  # what an app can do about a submit that was refused
        self._fleet: Fleet | None = None  # looked at by who submits what needs a rule
        self._groups: WeakKeyDictionary[asyncio.AbstractEventLoop, SubmitGroup] = WeakKeyDictionary()

    def submit(
        self, submissions: Sequence[Submission], *, connection: object | None = None
    ) -> list[SubmitResult]:
        """Store jobs in one transaction, all or none; with `connection` in the caller's own.

        Raises:
            KeyConflict: a key belongs to another payload. Nothing is stored.
            OutcomeUnknown: the answer was lost and could not be had within `patience_s`; `job_ids` are
                the ids to ask for or to submit again.
        """
        if any(each.job.writes_more for each in submissions):
            self._known_fleet().check(submissions)
        return self.run(self._submitting(submissions, connection), connection)

    async def asubmit(
        self, submissions: Sequence[Submission], *, connection: object | None = None
    ) -> list[SubmitResult]:
        """`submit` for async code. A plain single job may go into one insert with those submitted meanwhile."""
        if any(each.job.writes_more for each in submissions):
            await self._known_fleet().acheck(submissions)
        if connection is None and len(submissions) == 1 and _is_plain(submissions[0]):
            loop = asyncio.get_running_loop()
            group = self._groups.get(loop)
            if group is None:
                group = self._groups[loop] = SubmitGroup(self._send, loop)
            await group.submit(submissions[0])
            return [SubmitResult(submissions[0].job.id)]
        return await self.arun(self._submitting(submissions, connection), connection)

    def _known_fleet(self) -> Fleet:
        if self._fleet is None:
            from fencerow.core.client.fleet import Fleet  # few programs need it

            self._fleet = Fleet(self.engine)
        return self._fleet

    async def _drain_submits(self) -> None:
        """Wait until what this event loop submits is stored or refused."""
        group = self._groups.get(asyncio.get_running_loop())
        if group is not None:
            await group.drain()

    def _send(self, submissions: Sequence[Submission]) -> Awaitable[object]:
        return self.arun(self._submitting(submissions, None))

    def _submitting(
        self, submissions: Sequence[Submission], connection: object | None
    ) -> Procedure[list[SubmitResult]]:
        """Store them, wake workers for what is due, and tell who watches.

        Inside a caller's transaction nothing is due yet.
        """
        may_copy = connection is None and self.engine.traits.takes_copy
        tells = self._tells(submissions) if connection is None else None
        store_them = partial(
            storing, submissions, self.patience_s, connection, may_copy=may_copy, tells=tells
        )
        try:
            answers = yield from store_them()
        except InvalidInput as error:
            if self.mend is None or not (yield from self.mend(error, submissions)):
                raise
            answers = yield from store_them()
        if self.packing.waits:
            self._drop_unused(submissions, answers)
        if tells is not None:
            if not tells.are_told:
                self.engine.wake(tells.messages)
        elif connection is None:
            made = [
                each.job
                for each, answer in zip(submissions, answers, strict=True)
                if answer.replaced or not answer.replay
            ]
            self.engine.wake(hints_of(made))
        if self.telemetry.is_heard:
            self._emit_submitted(submissions, answers)
        return answers

    def _tells(self, submissions: Sequence[Submission]) -> Tells | None:
        """Whom to wake, where that is known before: of plain jobs that one statement stores."""
        if len(submissions) >= COPY_ROWS_MIN or not all(map(_is_plain, submissions)):
            return None
        hints = hints_of([each.job for each in submissions])
        return Tells(hints) if hints else None

    def _drop_unused(self, submissions: Sequence[Submission], answers: Sequence[SubmitResult]) -> None:
        """What was packed for jobs that were not stored as another one is there already.

        Under an id of its own a job may have been stored by the try whose answer was lost: then its row has this.
        """
        for each, answer in zip(submissions, answers, strict=True):
            if answer.id != each.job.id:
                self.packing.drop(each.job.args.encode())

    def _emit_submitted(self, submissions: Sequence[Submission], answers: Sequence[SubmitResult]) -> None:
        counts: dict[tuple[str, str], list[int]] = {}
        for each, answer in zip(submissions, answers, strict=True):
            count = counts.setdefault((each.job.template.name, each.job.template.queue), [0, 0, 0])
            count[0] += 1
            count[1] += answer.replay
            count[2] += answer.replaced
        for (name, queue), (count_all, replayed, replaced) in counts.items():
            self.telemetry.emit(
                Fact.SUBMITTED, job=name, queue=queue, count=count_all, replayed=replayed, replaced=replaced
            )


def _is_plain(submission: Submission) -> bool:
    """Whether nobody can have stored it before, so that it may go into one insert with strangers."""
    job = submission.job
    return submission.key is None and not submission.own_id and (job.terms is None or not is_settled(job))


def storing(
    submissions: Sequence[Submission],
    patience_s: float,
    connection: object | None = None,
    *,
    may_copy: bool = False,
    tells: Tells | None = None,
) -> Procedure[list[SubmitResult]]:
    """Store them in one transaction, all or none, and say for each which job it is.

    On a `connection` of the caller's they are part of the transaction that is open there, or that the driver begins;
    one in autocommit is refused. When the answer to the commit is lost, the same ids are submitted again for up to
    `patience_s` seconds.
    `may_copy`: the connection is one of ours, to PostgreSQL, so that many plain jobs may go by COPY.
    `tells`: whom to wake, if all of them are plain. Told with the first try, or not at all.

    Raises:
        KeyConflict: a key belongs to another payload. Nothing is stored.
        InvalidInput: an id of the caller's own belongs to other work, here or among the jobs. Nothing is stored.
        OutcomeUnknown: the database did not come back in time. Submit again with the same ids, or look.
    """
    if all(map(_is_plain, submissions)):
        jobs = [each.job for each in submissions]
        try:
            first = _first(jobs, may_copy=may_copy)
            first.tells = tells
            yield joining(first, connection)
        except OutcomeUnknown as error:
            yield from _insisting(store.resubmit(jobs), [job.id for job in jobs], patience_s, error)
        return [SubmitResult(job.id) for job in jobs]
    once = once_each(submissions)
    try:
        answers = yield from ask(joining(storing_once(once), connection))
    except OutcomeUnknown as error:
        again = joining(storing_once(once, again=True), connection)
        answers = yield from _insisting(again, [each.job.id for each in once], patience_s, error)
    return answers if len(once) == len(submissions) else answered_each(submissions, once, answers)


def _first(jobs: Sequence[NewJob], *, may_copy: bool) -> Operation[list[str]]:
    """How jobs are stored that nobody can have stored before."""
    if may_copy and len(jobs) >= COPY_ROWS_MIN:
        return store.submit_by_copy(jobs)
    more = any(job.writes_more for job in jobs)
    return store.submit_gated(jobs) if more else store.submit(jobs)


def _insisting(again: Operation[T], ids: Sequence[str], patience_s: float, doubt: Exception) -> Procedure[T]:
    """Run `again` until its outcome is known, as that of the first try is not, or patience ends."""
    for pause_s in _pauses(patience_s):
        yield Pause(pause_s)
        try:
            return (yield from ask(again))
        except DatabaseError as error:  # whatever keeps this try from being stored says nothing of the first
            doubt = error
    why = (
        f"the connection broke during the commit, and {patience_s:g} s were not enough to ask again ({doubt})"
    )
    raise in_doubt(ids, why[:400]) from doubt


def _pauses(patience_s: float) -> Iterator[float]:
    pause_s, deadline = FIRST_PAUSE_S, time.monotonic() + patience_s
    while (left_s := deadline - time.monotonic()) > 0:
        yield min(pause_s, left_s)
        pause_s = min(pause_s * 2, PAUSE_S_MAX)


def in_doubt(ids: Sequence[str], why: str) -> OutcomeUnknown:
    """The error for callers of a submit that may have been stored or not; `ids` are theirs and nobody else's."""
    shown = ", ".join(ids[:IDS_SHOWN]) + (f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else "")
    return OutcomeUnknown(
        f"it is unknown whether the submit of {shown} was stored",
        why,
        "submit again under the same id or key, or look the id up",
        job_ids=tuple(ids),
    )


class SubmitGroup:
    """Plain submissions of one event loop. `send` stores a batch, all or none."""

    def __init__(
        self, send: Callable[[Sequence[Submission]], Awaitable[object]], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._send = send
        self._loop = proxy(loop)  # known already: asking for the running one is a system call
        self._waiting: deque[tuple[Submission, asyncio.Future[None]]] = deque()
        self._sending: asyncio.Task[None] | None = None

    def submit(self, submission: Submission) -> asyncio.Future[None]:
        """Done when it is stored. A caller that is cancelled meanwhile does not take it back."""
        stored: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((submission, stored))
        if self._sending is None:
            self._sending = apart(self._send_all())
        return stored  # the insert is a task's of its own: a cancelled caller leaves it alone

    async def drain(self) -> None:
        """Wait until all that was accepted is stored or refused."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send_batch(self._next_batch())
        finally:
            self._sending = None
            for _, stored in self._waiting:
                stored.cancel()
            self._waiting.clear()

    def _next_batch(self) -> list[tuple[Submission, asyncio.Future[None]]]:
        batch = [self._waiting.popleft()]
        size = batch[0][0].job.args_bytes
        while self._waiting and len(batch) < GROUP_ROWS_MAX:
            size += self._waiting[0][0].job.args_bytes
            if size > GROUP_BYTES_MAX:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _send_batch(self, batch: list[tuple[Submission, asyncio.Future[None]]]) -> None:
        try:
            await self._send([submission for submission, _ in batch])
        except DatabaseError as error:
            if isinstance(error, StorageFull) and len(batch) > 1:
                half = len(batch) // 2  # there may be room for fewer
                await self._send_batch(batch[:half])
                await self._send_batch(batch[half:])
            else:
                _fail(batch, error)  # the database is away, full or in doubt: it would be for each of them
        except Exception as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            # One of them is bad. The batch was rolled back as a whole, so each may try alone.
            for member in batch:
                await self._send_batch([member])
        except BaseException:
            for _, stored in batch:
                stored.cancel()
            raise
        else:
            for _, stored in batch:
                if not stored.done():
                    stored.set_result(None)


def _fail(batch: Sequence[tuple[Submission, asyncio.Future[None]]], error: Exception) -> None:
    for submission, stored in batch:
        if not stored.done():
            stored.set_exception(_own(error, submission))


def _own(error: Exception, submission: Submission) -> Exception:
    """An error for each caller: a traceback grows with every place that raises it, and strangers' ids are no help."""
    if not isinstance(error, DatabaseError):
        return error
    doubtful = isinstance(error, OutcomeUnknown)
    own = in_doubt([submission.job.id], error.why) if doubtful else copy.copy(error)
    own.__cause__ = error.__cause__
    return own
