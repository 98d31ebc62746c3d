"""`RemoteClient`: submits jobs through a gateway, and hands out handles of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

import msgspec

from fencerow.core.errors import FencerowError, InvalidInput, JobCancelled, JobFailed, OutcomeUnknown
from fencerow.core.model.describe import ErrorRecord
from fencerow.core.model.ids import new_id, parse_id
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.state import State
from fencerow.core.verb import averb, verb
from fencerow.web.answers import Answered, Later, busy, checked_bound_s
from fencerow.web.remote.exchange import Exchange, Remote, Reply, asking
from fencerow.web.remote.flow_handle import RemoteFlows
from fencerow.web.remote.flows import RemoteFlow
from fencerow.web.remote.handle import RemoteHandle
from fencerow.web.remote.options import RemoteOptions, said
from fencerow.web.remote.output import RemoteOutput
from fencerow.web.remote.receiver import RemoteReceiver
from fencerow.web.remote.steps import RemoteSteps, quoted
from fencerow.web.remote.webhooks import RemoteWebhooks
from fencerow.web.remote.wire import Wire

if TYPE_CHECKING:
    import ssl

    from fencerow.output.model import Chunk

PATIENCE_S = 30.0
# Of the time in which an answer is wanted, so much is the gateway's: the rest is for the way back.
RETURN_S = 0.75  # for the gateway's last look, which may take a quarter of a second, and for the way back
WAITS = 0.5
WAIT_S_MAX = 60.0  # of a gateway
URL = "FENCEROW_GATEWAY_URL"
TOKEN = "FENCEROW_TOKEN"  # noqa: S105 - the name of a variable


class SubmitReply(msgspec.Struct, frozen=True):
    """What a submit is answered with; the state is told of a job that has ended within the wait."""

    id: str
    state: str = ""
    result: Any = None
    error: Mapping[str, str | None] = {}

    def succeeded(self) -> Any:
        """The result of the job that has ended.

        Raises:
            JobFailed, JobCancelled: it has none.
        """
        if self.state == State.SUCCEEDED:
            return self.result
        if self.state == State.CANCELLED:
            raise JobCancelled(
                f"job {self.id} was cancelled", "it has no result", "submit the work again if needed"
            )
        told = {name: str(self.error.get(name) or "") for name in ("type", "message", "code")}
        raise JobFailed(
            f"job {self.id} failed",
            told["message"],
            "its timeline says more; revive it when the cause is gone",
            job_id=self.id,
            error=ErrorRecord(traceback="", **told),
        )


class RemoteClient(RemoteSteps):
    """Submits jobs through the gateway at `url` and asks for them, from threads and event loops together.

    Without arguments it takes FENCEROW_GATEWAY_URL and FENCEROW_TOKEN. Every request may be repeated without harm, so
    one that is lost is sent again for `patience_s` seconds: a submit goes under an id that is made here. `verify`: as
    for TLS anywhere, an `ssl.SSLContext` of your own. Close it when done, or use it as a context manager.

    Raises:
        InvalidInput: there is no address or no token, or the address is none.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        patience_s: Seconds = PATIENCE_S,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        wire = Wire(_found(url, "url", URL), _found(token, "token", TOKEN), verify=verify)
        super().__init__(wire, in_seconds(patience_s))

    @verb
    def submit(
        self, job: str, args: Mapping[str, Any] | None = None, /, **options: Unpack[RemoteOptions]
    ) -> Remote[RemoteHandle]:
        """Submit the job of that name. `args` are JSON data, by name.

        Raises:
            UnknownJob, InvalidArguments, InvalidInput, PayloadTooLarge: it cannot be stored. Nothing is stored.
            KeyConflict: the key belongs to another payload.
            NotAuthenticated, NotAllowed: the token is not good for this.
            Unavailable: the gateway did not answer within `patience_s` seconds; nothing was stored.
            OutcomeUnknown: it may have been stored. Submit again under the same key, or with `id=` of `job_ids`.
        """
        reply = yield from self._submitting(job, args, options)
        return self._handle_of(reply, reply.decoded(SubmitReply).id)

    asubmit = averb(submit)

    @verb
    def answer(
        self,
        job: str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        within_s: Seconds,
        **options: Unpack[RemoteOptions],
    ) -> Remote[Answered[Any] | Later[RemoteHandle]]:
        """Submit the job of that name, and say within `within_s` seconds what came of it.

        The gateway waits for the job's end as long as the time lasts, up to a minute. The request is sent once, and
        each part of it, such as to connect, has so long. Whatever becomes of it, the job is stored once at most, under
        an id that is made here, or under your `key`.

        Raises:
            AnswerBusy: it was not known in time whether the job is stored. `job_ids` has its id: submit again under it.
            JobFailed, JobCancelled: it ended so, in time.
            NotAllowed: the token lacks the scope `read`.
            What `submit` raises, if the gateway said so in time.
        """
        within = checked_bound_s(within_s)
        own = None if options.get("key") else options.get("id") or new_id()
        named = cast("RemoteOptions", {**options, **({"id": own} if own else {})})
        try:
            reply = yield from self._submitting(job, args, named, within_s=within)
        except OutcomeUnknown:
            raise busy(own, within) from None
        told = reply.decoded(SubmitReply)
        if not told.state:
            return Later(self._handle_of(reply, told.id))
        return Answered(told.id, told.succeeded())

    aanswer = averb(answer)

    def _submitting(
        self,
        job: str,
        args: Mapping[str, Any] | None,
        options: RemoteOptions,
        *,
        within_s: float | None = None,
    ) -> Remote[Reply]:
        own, key = options.get("id"), options.get("key")
        job_id = new_id() if own is None else parse_id(own)
        document = {"job": job, "args": dict(args or {}), **said(options), "id": job_id}
        document.pop("key", None)
        if key is not None and own is None:
            del document["id"]  # the key makes it one job
        headers = {} if key is None else {"idempotency-key": f'"{quoted(key)}"'}
        try:
            reply: Reply = yield from asking(
                _submit(document, headers, within_s), self._patience_s if within_s is None else 0.0
            )
        except FencerowError as error:
            if error.repeat == "ask" and key is None:
                error.job_ids = (job_id,)  # type: ignore[attr-defined]
            raise
        return reply

    def _handle_of(self, reply: Reply, job_id: str) -> RemoteHandle:
        return RemoteHandle(self, job_id, replay=reply.headers.get("idempotent-replayed") == "true")

    def handle(self, job_id: str) -> RemoteHandle:
        """A handle for the job of this id. Asks nobody yet.

        Raises:
            InvalidInput: it is no id.
        """
        return RemoteHandle(self, job_id)

    def receiver(self, name: str) -> RemoteReceiver:
        """Takes the ends of jobs that were submitted with `handover=` for this receiver. Asks nobody yet."""
        return RemoteReceiver(self, name)

    @property
    def webhooks(self) -> RemoteWebhooks:
        """Endpoints of webhooks, and what they were told."""
        return RemoteWebhooks(self)

    @property
    def flows(self) -> RemoteFlows:
        """Finds flows again. `flow` makes one."""
        return RemoteFlows(self)

    def flow(self, name: str, *, key: str | None = None) -> RemoteFlow:
        """Put jobs together of which some wait for others: add them, then submit the flow as a whole.

        `key`: flows of one name and one key are one flow. Asks nobody yet.
        """
        return RemoteFlow(self, name, key=key)

    def output(self, job_id: str, *, after: int = 0) -> Iterator[Chunk]:
        """What a job emits, behind the offset `after`, until it has ended. It connects again by itself.

        Raises:
            JobNotFound: there is no such job, or not for this token. JobGone: it was removed meanwhile.
            SealKeyUnknown, PayloadAltered, MalformedPayload: the gateway cannot read it.
            Unavailable: the gateway did not answer for `patience_s` seconds. Read on with `after=`.
            NotAuthenticated, NotAllowed: the token is not good for this.
        """
        return iter(RemoteOutput(self._wire, parse_id(job_id), after, self._patience_s))

    def aoutput(self, job_id: str, *, after: int = 0) -> AsyncIterator[Chunk]:
        """`output` for async code: `async for chunk in client.aoutput(job_id)`."""
        return aiter(RemoteOutput(self._wire, parse_id(job_id), after, self._patience_s))

    def close(self) -> None:
        """Close the connections of threads."""
        self._wire.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop, and those of threads."""
        await self._wire.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _submit(document: Mapping[str, Any], headers: Mapping[str, str], within_s: float | None) -> Exchange:
    """The request of a submit; `within_s`: it waits for the job's end, a little less than the caller waits for it."""
    if within_s is None:
        return Exchange("POST", "/v1/jobs", document=document, headers=headers)
    wait_s = min(WAIT_S_MAX, max(within_s * WAITS, within_s - RETURN_S))
    return Exchange(
        "POST", "/v1/jobs", {"wait": f"{wait_s:.3f}"}, document, headers, wait_s=wait_s, bound_s=within_s
    )


def _found(given: str | None, what: str, variable: str) -> str:
    found = given or os.environ.get(variable)
    if not found:
        raise InvalidInput(
            f"no {what} was given",
            "a client asks one gateway, under one token",
            f"pass {what}=, or set {variable}",
        )
    return found
