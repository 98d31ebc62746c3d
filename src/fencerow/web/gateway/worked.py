"""The callback of jobs worked over HTTP: what the endpoint of an attempt says later, by the attempt's own token.

POST /v1/worked/{id}/{attempt}/succeed     its result, once
POST /v1/worked/{id}/{attempt}/fail        that it failed, once
POST /v1/worked/{id}/{attempt}/heartbeat   that it is at work
POST /v1/worked/{id}/{attempt}/progress    how far it is
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fencerow.core.errors import FencerowError, InvalidInput, InvalidPayload, PayloadTooLarge
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import moment
from fencerow.core.model.packed import Bound
from fencerow.core.model.percent import percent_of
from fencerow.core.model.value import ValueCodec, ValueType
from fencerow.core.worker.context import NOTE_LENGTH_MAX
from fencerow.db.text import check_text
from fencerow.errors import AttemptOver, AttemptUnknown
from fencerow.web.errors import InvalidRequest, TooLate, UnderMaintenance, Unready
from fencerow.web.gateway.problem import OF_DATABASE
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.reading import headers as read
from fencerow.web.webhooks.body import iso
from fencerow.web.worked.answers import FailedAnswer, Outcome, Ticket, answering, beat, name_of, progress
from fencerow.web.worked.errors import ResultUnfit
from fencerow.web.worked.known import worked_by
from fencerow.web.worked.token import AttemptToken

ATTEMPT_MAX = 8 * 10**18
MESSAGE_LENGTH_MAX = 10_000
PLAIN = ValueType.of(Any, "the result")


class WorkedResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the job results in."""

    result: Any = None


class WorkedFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That the attempt failed. `retry`: false ends the job as failed, true or none leaves it to the job's rule."""

    message: Annotated[str, msgspec.Meta(max_length=MESSAGE_LENGTH_MAX)] = ""
    retry: bool | None = None
    retry_after_s: Annotated[float, msgspec.Meta(ge=0)] | None = None


class WorkedProgress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far the attempt is, from 0 to 100."""

    percent: float
    note: str | None = None


class WorkedTaken(msgspec.Struct, frozen=True):
    """What was said counts. Of a heartbeat: until when the endpoint may answer, if it is silent from now on."""

    id: str
    attempt: int
    until: str | None = None


async def succeed(call: Call) -> Answer:
    """Answer with the result. Once: a second answer, or a late one, is 409 and changes nothing. A result that is not
    of the declared type is 422 where the gateway knows that: the attempt goes on."""
    ticket = _ticket(call)
    text = _codec(call).encode(call.body.result)
    await _check_type(call, ticket, text)
    return await _answered(call, ticket, "succeeded", text)


async def fail(call: Call) -> Answer:
    """Answer that the attempt failed. Once."""
    ticket, said = _ticket(call), call.body
    failed = FailedAnswer(said.message, said.retry, said.retry_after_s)
    return await _answered(call, ticket, "failed", msgspec.json.encode(failed))


async def heartbeat(call: Call) -> Answer:
    """Say that the endpoint is at work. 409: stop; the reason says why, such as `cancelled`."""
    ticket = _ticket(call)
    until_us = await call.app.engine.arun(beat(ticket))
    return Answer(200, WorkedTaken(ticket.id, ticket.attempt, iso(moment(until_us))))


async def say_progress(call: Call) -> Answer:
    """Say how far the attempt is. 409: stop."""
    ticket, said = _ticket(call), call.body
    note = said.note
    if note is not None:
        check_text(note, "the note of the progress", NOTE_LENGTH_MAX, lines=True, empty=True)
    await call.app.engine.arun(progress(ticket, percent=percent_of(said.percent), note=note))
    return Answer(200, WorkedTaken(ticket.id, ticket.attempt))


async def _answered(call: Call, ticket: Ticket, outcome: Outcome, text: bytes) -> Answer:
    stored = call.client.packing.inside.pack(text, Bound.result(ticket.id)).decode()
    await call.client.arun(answering(ticket, outcome, stored))
    return Answer(200, WorkedTaken(ticket.id, ticket.attempt))


async def _check_type(call: Call, ticket: Ticket, text: bytes) -> None:
    """What its worker would refuse is refused here, if this gateway's app declares the job: so its endpoint may answer
    again.

    Raises:
        ResultUnfit: it is not of the declared type.
    """
    if known := worked_by(call.app):
        name = await call.app.engine.arun(name_of(ticket))
        if name is not None and name in known:
            known[name].check(text)


def _ticket(call: Call) -> Ticket:
    """Who answers which attempt.

    Raises:
        AttemptUnknown: it has no token of an attempt. InvalidInput: the path names no job or no attempt.
    """
    token = AttemptToken.parsed(read.bearer_of(call.headers.get("authorization", ())))
    if token is None:
        raise AttemptUnknown(
            "the request has no token of an attempt",
            "it came with the request of the attempt, as data.callback.token",
            "send it as `Authorization: Bearer fwt_…`",
        )
    number = call.params["attempt"]
    if not (number.isascii() and number.isdecimal() and len(number) < 20 and int(number) <= ATTEMPT_MAX):
        raise InvalidInput("the attempt is no number", "that of the request is expected", "correct the path")
    return Ticket(parse_id(call.params["id"]), int(number), token.digest)


def _codec(call: Call) -> ValueCodec:
    return ValueCodec(PLAIN, call.app.config.payload_bytes_max)


REFUSALS = (
    AttemptUnknown, AttemptOver, InvalidRequest, InvalidInput, InvalidPayload, PayloadTooLarge, Unready,
    UnderMaintenance, TooLate, *OF_DATABASE,
)  # fmt: skip
TOKEN = {"Authorization": "`Bearer` and the token of the attempt, which came with its request"}


def _route(
    path: str,
    name: str,
    answer: Any,
    body: type[msgspec.Struct] | None = None,
    *also: type[FencerowError],
) -> Route:
    return Route(
        "POST", f"/v1/worked/{{id}}/{{attempt}}/{path}", name, answer, None, {200: WorkedTaken},
        body=body, refusals=(*REFUSALS, *also), accepts=TOKEN, tag="worked",
    )  # fmt: skip


ROUTES = (
    _route("succeed", "succeedAttempt", succeed, WorkedResult, ResultUnfit),
    _route("fail", "failAttempt", fail, WorkedFailure),
    _route("heartbeat", "beatAttempt", heartbeat),
    _route("progress", "sayProgressOfAttempt", say_progress, WorkedProgress),
)
