"""Storing new jobs so that an answer which was lost never makes a second job, and telling the workers.

Plain submits of one event loop go into one insert: `submit_group.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fencerow.core.client.base import ClientBase
from fencerow.core.client.forms import Form, first_at_once, first_of, form_of, tells_of
from fencerow.core.client.submit_group import SubmitGroups, in_doubt
from fencerow.core.errors import DatabaseError, FencerowError, InvalidInput, OutcomeUnknown
from fencerow.core.errors.bare import bare
from fencerow.core.model.job import NewJob
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store import store
from fencerow.core.store.hints import hints_of
from fencerow.core.store.storing import answered_each, once_each, storing_once
from fencerow.core.store.terms import is_settled
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.db.apart import apart
from fencerow.db.begun import Over, TasklessRun, told
from fencerow.db.engine import Begins, Engine
from fencerow.db.run import Operation, Pause, Procedure, Request, Tells, arun, ask, joining, run

if TYPE_CHECKING:
    from fencerow.core.client.fleet import Fleet

T = TypeVar("T")

PATIENCE_S = 5.0
FIRST_PAUSE_S = 0.05
PAUSE_S_MAX = 1.0


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
        self._going_on: set[asyncio.Task[None]] = set()
        self._groups = SubmitGroups(self._send, self._beginning)
        self.gathered = self._groups.submit  # for what is plain and writes no more than its row

    def submit(
        self, submissions: Sequence[Submission], *, connection: object | None = None
    ) -> list[SubmitResult]:
        """Store jobs in one transaction, all or none; with `connection` in the caller's own.

        Raises:
            KeyConflict: a key belongs to another payload. Nothing is stored.
            OutcomeUnknown: the answer was lost and could not be had within `patience_s`; `job_ids` are
                the ids to ask for or to submit again.
        """
        if _write_more(submissions) and (rules := self._known_fleet().due(submissions)):
            run(self._known_fleet().checking(rules), partial(self._answer, self.engine))
        return self.run(self._submitting(submissions, connection), connection)

    async def asubmit(
        self, submissions: Sequence[Submission], *, connection: object | None = None
    ) -> list[SubmitResult]:
        """`submit` for async code. A plain single job may go into one insert with those submitted meanwhile."""
        if _write_more(submissions) and (rules := self._known_fleet().due(submissions)):
            await arun(self._known_fleet().checking(rules), partial(self._aanswer, self.engine))
        if connection is None and len(submissions) == 1 and _is_plain(submissions[0]):
            await self.gathered(submissions[0])
            return [SubmitResult(submissions[0].job.id)]
        return await self.arun(self._submitting(submissions, connection), connection)

    def _known_fleet(self) -> Fleet:
        if self._fleet is None:
            from fencerow.core.client.fleet import Fleet  # few programs need it

            self._fleet = Fleet()
        return self._fleet

    async def _drain_submits(self) -> None:
        """Wait until what this event loop submits is stored or refused."""
        await self._groups.drain()

    def _send(self, submissions: Sequence[Submission]) -> Awaitable[object]:
        return self.arun(self._submitting(submissions, None, plain=True))

    def _beginning(self) -> Callable[[Sequence[Submission], Over], bool] | None:
        """How a batch is sent at once, where the engine can do that."""
        return partial(self._begin, self.engine) if isinstance(self.engine, Begins) else None

    def _begin(self, engine: Begins, submissions: Sequence[Submission], over: Over) -> bool:
        """Begin to store them before anybody waits. False: nothing was sent.

        What went well needs no procedure. What did not goes on in one, as the answer to its first request.
        """
        if self._ready is not None:
            return False
        first, tells = first_at_once(submissions, may_copy=self.engine.traits.takes_copy)
        return engine.begin(first, partial(self._batch_answered, engine, submissions, tells, over))

    def _batch_answered(
        self,
        engine: Begins,
        submissions: Sequence[Submission],
        tells: Tells | None,
        over: Over,
        _: object,
        error: BaseException | None,
    ) -> None:
        """Nearly always nobody looks at what each came to: it is stored, under the id that was made for it."""
        if error is not None:
            self._go_on(engine, submissions, error, over)
            return
        try:
            if tells is None or self.telemetry.is_heard:
                self._tell(submissions, [SubmitResult(each.job.id) for each in submissions], tells)
            elif not tells.are_told:
                self.engine.wake(tells.messages)
        except BaseException as raised:
            over(None, raised)
        else:
            over(None, None)

    def _go_on(
        self, engine: Begins, submissions: Sequence[Submission], error: BaseException, over: Over
    ) -> None:
        """Go on with what was answered so to its first try."""

        def begin(request: Request | Pause, then: Over) -> bool:
            return isinstance(request, Operation) and engine.begin(request, then)

        def ended(result: Any, error: BaseException | None) -> None:
            over(result, bare(error) if isinstance(error, FencerowError) else error)

        procedure = self._submitting(submissions, None, plain=True)
        next(procedure)
        begun: TasklessRun[Request, list[SubmitResult]] = TasklessRun(
            procedure, ended, begin=begin, beside=self._beside
        )
        begun.answered(None, error)

    def _beside(self, procedure: Procedure[Any], over: Over) -> None:
        task = apart(told(self.arun(procedure), over))
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    def _submitting(
        self, submissions: Sequence[Submission], connection: object | None, *, plain: bool | None = None
    ) -> Procedure[list[SubmitResult]]:
        """Store them, wake workers for what is due, and tell who watches.

        Inside a caller's transaction nothing is due yet. `plain`: whether all of them are; None: look.
        """
        if plain is None:
            plain = all(map(_is_plain, submissions))
        tells: Tells | None = None
        if plain:
            jobs = [each.job for each in submissions]
            form = form_of(jobs, may_copy=connection is None and self.engine.traits.takes_copy)
            tells = tells_of(jobs, form) if connection is None else None
            store_them = partial(storing_plain, jobs, form, self.patience_s, connection, tells=tells)
        else:
            store_them = partial(storing_asked, submissions, self.patience_s, connection)
        try:
            answers = yield from store_them()
        except InvalidInput as error:
            if self.mend is None or not (yield from self.mend(error, submissions)):
                raise
            answers = yield from store_them()
        self._tell(submissions, answers, tells, ours=connection is None)
        return answers

    def _tell(
        self,
        submissions: Sequence[Submission],
        answers: Sequence[SubmitResult],
        tells: Tells | None,
        *,
        ours: bool = True,
    ) -> None:
        """Wake workers for what was stored and is due, and tell who watches. `ours`: the transaction is over."""
        if self.packing.waits:
            self._drop_unused(submissions, answers)
        if tells is not None:
            if not tells.are_told:
                self.engine.wake(tells.messages)
        elif ours:
            made = [
                each.job
                for each, answer in zip(submissions, answers, strict=True)
                if answer.replaced or not answer.replay
            ]
            self.engine.wake(hints_of(made))
        if self.telemetry.is_heard:
            self._emit_submitted(submissions, answers)

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


def _write_more(submissions: Sequence[Submission]) -> bool:
    if len(submissions) == 1:  # nearly always, and then a generator would be most of the cost
        return submissions[0].job.writes_more
    return any(each.job.writes_more for each in submissions)


def _is_plain(submission: Submission) -> bool:
    """Whether nobody can have stored it before, so that it may go into one insert with strangers."""
    job = submission.job
    return submission.key is None and not submission.own_id and (job.terms is None or not is_settled(job))


def storing_plain(
    jobs: Sequence[NewJob],
    form: Form,
    patience_s: float,
    connection: object | None = None,
    *,
    tells: Tells | None = None,
) -> Procedure[list[SubmitResult]]:
    """Store plain jobs in one transaction, all or none.

    On a `connection` of the caller's they are part of the transaction that is open there, or that the driver begins;
    one in autocommit is refused. When the answer to the commit is lost, the same ids are submitted again for up to
    `patience_s` seconds.
    `tells`: whom to wake. Told with the first try, or not at all.

    Raises:
        OutcomeUnknown: the database did not come back in time. Submit again with the same ids, or look.
    """
    try:
        yield joining(first_of(jobs, form, tells), connection)
    except OutcomeUnknown as error:
        if tells is not None:  # nobody knows which of the two stores them
            tells.messages = [*tells.messages, *hints_of(jobs)]
        yield from _insisting(store.resubmit(jobs), [job.id for job in jobs], patience_s, error)
    return [SubmitResult(job.id) for job in jobs]


def storing_asked(
    submissions: Sequence[Submission], patience_s: float, connection: object | None = None
) -> Procedure[list[SubmitResult]]:
    """`storing_plain` for submits of which some are not, and say for each which job it is.

    Raises:
        KeyConflict: a key belongs to another payload. Nothing is stored.
        InvalidInput: an id of the caller's own belongs to other work, here or among the jobs. Nothing is stored.
        OutcomeUnknown: the database did not come back in time. Submit again with the same ids, or look.
    """
    once = once_each(submissions)
    try:
        answers = yield from ask(joining(storing_once(once), connection))
    except OutcomeUnknown as error:
        again = joining(storing_once(once, again=True), connection)
        answers = yield from _insisting(again, [each.job.id for each in once], patience_s, error)
    return answers if len(once) == len(submissions) else answered_each(submissions, once, answers)


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
