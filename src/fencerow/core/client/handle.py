"""The handle of one job: its result, how it stands, and its moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from fencerow.core.answering import answer
from fencerow.core.client.base import ClientBase
from fencerow.core.client.moving import cancelling, reviving
from fencerow.core.client.refs import CancelAnswer, reading
from fencerow.core.errors import JobCancelled, JobFailed, JobGone, JobNotFound
from fencerow.core.model.change import AskedChange, JobChanged
from fencerow.core.model.describe import ErrorRecord
from fencerow.core.model.job import EndOfJob, JobRecord
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.state import State
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure
from fencerow.db.text import kind_and_text, shortened

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

MESSAGE_SHOWN = 600


@answer
class Handle(msgspec.Struct, Generic[R_co], frozen=True, eq=False, gc=False):
    """One job, by its id. It has nothing else in it, so it stays valid across retries, restarts and revivals.

    `replay` is true if an earlier submit with the same id, or with the same key of either kind, had made the
    job. `answer` says what this submit came to.
    """

    _client: ClientBase
    id: str
    _decode: Callable[[bytes], R_co]
    replay: bool = False
    _existed: bool = True
    _replaced: bool = False

    def __repr__(self) -> str:
        return f"<Handle {self.id}{' (replay)' if self.replay else ''}>"

    @property
    def answer(self) -> Literal["inserted", "existing", "replaced"]:
        """Whether the submit stored this job, found it, or gave it what it says itself, while it had not started."""
        if self._replaced:
            return "replaced"
        return "existing" if self.replay else "inserted"

    def result(self, timeout_s: Seconds | None = None) -> R_co:
        """Wait for the job's end and return what its handler returned.

        Raises:
            JobFailed: it ended `failed`; `error` is what the last attempt reported.
            JobCancelled: it ended `cancelled`.
            JobGone: it was removed by retention or by hand, or it is ephemeral and succeeded before anybody waited.
            JobNotFound: there is no such job. The transaction that submits it may not have committed yet.
            ResultTimeout: it has not ended within `timeout_s` seconds. It goes on; ask again. With
                `timeout_s=0` the job is read only once, and the error is the subclass `NotReady`.
            MalformedPayload: the stored result does not fit the type this code declares.
            SealKeyUnknown: the result is sealed or signed, and this client has no such key.
            PayloadAltered: it is not what the job returned.
            StoreUnavailable, PayloadMissing: it is large, and is not to be had from its store.
        """
        stored = self._succeeded(self._client.outcome(self.id, timeout_s))
        return self._decode(self._client.plain_result(self.id, stored))

    async def aresult(self, timeout_s: Seconds | None = None) -> R_co:
        """`result` for async code. A caller that is cancelled stops waiting; the job goes on."""
        stored = self._succeeded(await self._client.aoutcome(self.id, timeout_s))
        return self._decode(await self._client.aplain_result(self.id, stored))

    @verb
    def refresh(self) -> Procedure[JobRecord]:
        """The job as it stands now.

        Raises:
            JobNotFound: it is not there. `JobGone` if it was removed.
        """
        return (yield from reading(self.id))

    arefresh = averb(refresh)

    @verb
    def status(self) -> Procedure[State]:
        """The state the job is in now.

        Raises:
            JobNotFound: it is not there.
        """
        return (yield from reading(self.id)).state

    astatus = averb(status)

    @verb
    def cancel(self, *, reason: str | None = None, only_queued: bool = False) -> Procedure[CancelAnswer]:
        """Cancel the job: see `Client.cancel`."""
        return (yield from cancelling(self.id, self._client.actor, reason, only_queued))

    acancel = averb(cancel)

    @verb
    def revive(self, *, reason: str | None = None) -> Procedure[None]:
        """Queue the finished job again: see `Client.revive`."""
        return (yield from reviving(self.id, self._client.actor, reason))

    arevive = averb(revive)

    @verb
    def change(
        self,
        *,
        run_at: datetime | None = None,
        delay_s: Seconds | None = None,
        priority: int | None = None,
        queue: str | None = None,
        args: Mapping[str, Any] | None = None,
        reason: str | None = None,
        connection: object | None = None,
    ) -> Procedure[JobChanged]:
        """Change the job while nobody runs it: see `Client.change`."""
        asked = AskedChange(run_at=run_at, delay_s=delay_s, priority=priority, queue=queue, args=args)
        return (yield from self._client.changing(self.id, asked, reason, connection))

    achange = averb(change)

    @verb
    def run_now(
        self, *, reason: str | None = None, connection: object | None = None
    ) -> Procedure[JobChanged]:
        """Make the job due at once: see `Client.run_now`."""
        return (yield from self._client.changing(self.id, AskedChange(run_now=True), reason, connection))

    arun_now = averb(run_now)

    def _run(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)

    def _succeeded(self, ended: EndOfJob | None) -> bytes:
        """The result as it is stored of a job that has one."""
        if ended is None:
            raise self._missing()
        if ended.state is State.SUCCEEDED:
            return (ended.result or "null").encode()
        if ended.state is State.CANCELLED:
            raise JobCancelled(
                f"job {self.id} was cancelled", "it has no result", "submit the work again if needed"
            )
        raise failed(ended)

    def _missing(self) -> JobNotFound:
        if self._existed:
            return JobGone(
                f"job {self.id} is gone",
                "it was removed after its end, by retention or by hand, or it is ephemeral and succeeded",
                "wait for an ephemeral job before it ends, or keep results (retention_s), or store them elsewhere",
            )
        return JobNotFound(
            f"there is no job {self.id}",
            "neither live nor finished",
            "commit the transaction that submits it before you wait for it, or check the id",
        )


def failed(ended: EndOfJob) -> JobFailed:
    """The error to raise for a job that ended failed."""
    record = stored_error(ended.error)
    said = kind_and_text(record.type, shortened(record.message, MESSAGE_SHOWN))
    return JobFailed(
        f"job {ended.id} failed" + (f" ({record.code})" if record.code else ""),
        said,
        f"`fencerow jobs show {ended.id}` has its timeline; revive it when the cause is gone",
        job_id=ended.id,
        error=record,
    )


def stored_error(text: str | None) -> ErrorRecord:
    """What was stored of an error; ends that the database decided have no traceback of their own."""
    try:
        plain = msgspec.json.decode(text or "null")
    except ValueError:
        plain = None
    if not isinstance(plain, dict):
        return ErrorRecord(type="", message="no error was recorded", traceback="", code="")
    return ErrorRecord(
        **{name: str(plain.get(name) or "") for name in ("type", "message", "traceback", "code")}
    )
