"""The handler of a job worked over HTTP: one attempt is one request, and perhaps an answer that comes later."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import msgspec

from fencerow.core.app.app import JobsApp
from fencerow.core.errors import InvalidInput, LeaseLost, MissingExtra
from fencerow.core.model.control import Snooze, Suspend
from fencerow.core.model.packed import Bound
from fencerow.core.model.value import Misfit, ValueType
from fencerow.core.worker.context import Job
from fencerow.web.webhooks.settings import allowed_of
from fencerow.web.worked import attempts
from fencerow.web.worked.answers import FailedAnswer
from fencerow.web.worked.attempts import Answered, Fencing, Overdue
from fencerow.web.worked.endpoint import WorkedEndpoint, before_end_s
from fencerow.web.worked.errors import ResultUnfit, WorkedFailed, WorkedOverdue, WorkedUnfit
from fencerow.web.worked.telling import Sent, teller_of
from fencerow.web.worked.token import AttemptToken

log = logging.getLogger("fencerow.worked")

UNSIGNED_S: Final = 60.0  # until somebody has set what is missing, or another worker takes it
LOOK_S: Final = 0.1  # the first pause between two looks for an answer, while the slot is kept
LOOK_S_MAX: Final = 2.0


class WorkedOverHttp:
    """Hands attempts of one job to its endpoint, and makes of what comes back what the handler returns or raises."""

    def __init__(self, app: JobsApp, endpoint: WorkedEndpoint, result: ValueType) -> None:
        self._app = app
        self.endpoint = endpoint
        self._result = result
        self._allow = allowed_of(app.config)
        self._teller = None if endpoint.cancel_url is None else teller_of(app)

    async def work(self, job: Job, args: bytes) -> Any:
        """One attempt: the endpoint's result.

        Raises:
            WorkedFailed, WorkedUnfit, WorkedOverdue: the attempt has failed, and how.
            Suspend: the endpoint answers later.
            Snooze: nothing here can sign. LeaseLost: the job belongs to a newer attempt.
        """
        fencing = Fencing(job.id, job.holder, job.attempt)
        token = None if self.endpoint.callbacks is None else AttemptToken.new()
        if token is not None:
            before = await self._open(fencing, token)
            if before is not None:
                return self._answered(job, before)
        from fencerow.web.worked.judging import LaterReply  # with h11: only where something is sent

        came = await self._came(job, args, self._signers(), token)
        if isinstance(came, LaterReply):
            return await self._later(job, fencing)
        if token is not None:
            earlier = await self._app.engine.arun(attempts.close(fencing))
            if earlier is not None:
                return self._answered(job, earlier)
        if isinstance(came, WorkedFailed | WorkedUnfit):
            raise came
        return self._decoded(came.text)

    async def _came(self, job: Job, args: bytes, signers: Any, token: AttemptToken | None) -> Any:
        """What the reply makes of the attempt."""
        from fencerow.web.worked.judging import LaterReply, judged
        from fencerow.web.worked.sending import sent

        try:
            reply = await sent(job, args, self.endpoint, signers, token, self._allow)
            came = judged(reply, self.endpoint.reply_bytes_max)
        except WorkedFailed as error:
            return error
        except asyncio.CancelledError:
            if self._teller is not None:
                self._teller.interrupted(Sent(job.id, job.attempt))
            raise
        if isinstance(came, LaterReply) and token is None:
            return WorkedFailed(
                "the endpoint answered 202: it would answer later",
                "this job names no gateway for later answers",
                "declare it with callbacks=, or answer with the result",
                retryable=False,
            )
        return came

    async def _open(self, fencing: Fencing, token: AttemptToken) -> Answered | Overdue | None:
        opened = await self._app.engine.arun(
            attempts.open_attempt(
                fencing, token.digest, answer_s=self.endpoint.answer_s, silent_s=self.endpoint.silent_s
            )
        )
        if opened is None:
            raise LeaseLost(
                f"attempt {fencing.attempt} no longer holds job {fencing.id}",
                "it was not sent",
                "nothing was changed",
            )
        return opened.before

    async def _later(self, job: Job, fencing: Fencing) -> Any:
        """The endpoint has said that it answers later: wait for that, without a slot unless it is to be kept."""
        earlier: Answered | Overdue | None = await self._app.engine.arun(attempts.defer(fencing))
        if earlier is None and not self.endpoint.keeps_slot:
            raise Suspend("the answer of its endpoint")
        return self._answered(job, earlier or await self._waited(job, fencing))

    async def _waited(self, job: Job, fencing: Fencing) -> Answered | Overdue:
        """What came while the slot is kept. It ends before the attempt's own time does: an answer that was told to
        count must not be lost with that."""
        arun, loop = self._app.engine.arun, asyncio.get_running_loop()
        remaining_s = job.remaining_s
        end = None if remaining_s is None else loop.time() + before_end_s(remaining_s)
        pause_s = LOOK_S
        while end is None or loop.time() < end:
            await asyncio.sleep(pause_s if end is None else min(pause_s, max(0.0, end - loop.time())))
            pause_s = min(LOOK_S_MAX, 2 * pause_s)
            if (came := await arun(attempts.look(fencing))) is not None:
                return came
        return await arun(attempts.close(fencing)) or Overdue(fencing.attempt)

    def check(self, text: bytes) -> None:
        """Whether a result is of the declared type; `text` is JSON.

        Raises:
            ResultUnfit: it is not.
        """
        try:
            self._result.unpack(text)
        except Misfit as misfit:
            raise ResultUnfit(
                f"the result does not fit: result{misfit.path}: {misfit.reason}",
                "the job declares another type; nothing was changed",
                "answer with a result of that type, or by /fail, while the attempt lasts",
            ) from None

    def _answered(self, job: Job, came: Answered | Overdue) -> Any:
        """The result of an answer that came by the callback.

        Raises:
            WorkedFailed, WorkedOverdue: it is none.
        """
        if isinstance(came, Overdue):
            raise WorkedOverdue(
                f"the endpoint has not answered attempt {came.attempt} in time",
                f"it said that it answers later; it has {self.endpoint.answer_s:g} s, and may be silent for "
                f"{self.endpoint.silent_s:g} s",
                "look at the endpoint; what it still answers for that attempt is refused",
            )
        plain = self._app.client.packing.unpack(came.answer.encode(), Bound.result(job.id))
        if came.outcome == "succeeded":
            return self._decoded(plain)
        from fencerow.web.worked.judging import failure_of

        raise failure_of(msgspec.json.decode(plain, type=FailedAnswer))

    def _decoded(self, text: bytes) -> Any:
        """The result as its declared type.

        Raises:
            WorkedFailed: it is no JSON: half an answer, or a proxy's page. WorkedUnfit: it is of another type.
        """
        try:
            return self._result.unpack(text)
        except Misfit as misfit:
            where, reason = misfit.path, misfit.reason
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise WorkedFailed(
                "the endpoint's result is no JSON", "its reply was cut, or is a page"
            ) from None
        raise WorkedUnfit(
            f"the endpoint's result does not fit: result{where}: {reason}",
            "the job declares another type",
            "let the endpoint answer as declared, or correct the declaration",
        )

    def _signers(self) -> Any:
        """What signs.

        Raises:
            Snooze: nothing here does. No attempt is used up for that.
        """
        try:
            return self.endpoint.signers()
        except (InvalidInput, MissingExtra) as error:
            log.error("jobs worked over HTTP cannot be signed here: %s", error)
            raise Snooze(UNSIGNED_S, str(error)) from None
