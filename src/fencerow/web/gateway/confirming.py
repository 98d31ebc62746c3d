"""Handovers over HTTP: a receiver in any language takes the ends of jobs in their order, and confirms them.

    POST /v1/handovers/take       the next ends, each with a fence; it waits for the first one
    POST /v1/jobs/{id}/confirm    the receiver has it: under its fence, so that who lost the lease changes nothing
    POST /v1/jobs/{id}/release    it cannot be delivered now: others may take it

They are of jobs in all queues, so a token that is good for some queues is refused here.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fencerow.command.times import iso
from fencerow.core.errors import FencerowError, InvalidInput, MalformedPayload, NotReady
from fencerow.core.model.ids import parse_id
from fencerow.core.model.packed import Bound
from fencerow.errors import HandoverLost, HandoverNotFound
from fencerow.handovers.client import LEASE_S, LEASE_S_MAX, RECEIVER_LENGTH_MAX, Receiver
from fencerow.handovers.handovers import Handover
from fencerow.handovers.terms import DEFAULT_RECEIVER
from fencerow.web.gateway.ends import Confirmed, End, Ends, Released
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import WAIT_S_MAX, Answer, Call, Route
from fencerow.web.gateway.shapes import ErrorDocument, Given, error_document
from fencerow.web.tokens.scope import Scope

ENDS_MAX = 32  # in one answer: each may bring a large result
FENCE = re.compile(r"([0-9]{1,18})\.([0-9a-f-]{36})")

ReceiverName = Annotated[str, Meta(min_length=1, max_length=RECEIVER_LENGTH_MAX)]
Fence = Annotated[str, Meta(pattern=rf"^{FENCE.pattern}$", description="as the take answered it")]
TakeId = Annotated[
    str,
    Meta(max_length=100, description="a UUID of your own: with it a take whose answer was lost is repeated"),
]


class Take(Given, frozen=True, kw_only=True):
    """Whose ends, how many, for how long they are this caller's, and how long to wait for the first."""

    receiver: ReceiverName = DEFAULT_RECEIVER
    limit: Annotated[int, Meta(ge=1, le=ENDS_MAX)] = 1
    lease_s: Annotated[float, Meta(ge=1, le=LEASE_S_MAX)] = LEASE_S
    wait_s: Annotated[float, Meta(ge=0, le=WAIT_S_MAX)] = 0.0
    take: TakeId | None = None
    after: Annotated[str, Meta(max_length=1_000, description="`after` of the take before")] = ""


class Confirm(Given, frozen=True, kw_only=True):
    """By which receiver, under which take. Without `fence` it is confirmed whoever has it: for a person's word."""

    receiver: ReceiverName = DEFAULT_RECEIVER
    fence: Fence | None = None


class Release(Given, frozen=True, kw_only=True):
    """By which receiver, of which take, and for how many seconds nobody shall take it."""

    fence: Fence
    receiver: ReceiverName = DEFAULT_RECEIVER
    delay_s: Annotated[float, Meta(ge=0, le=LEASE_S_MAX)] = 0.0


async def take(call: Call) -> Answer:
    """Take the next ends of jobs that go to a receiver: of each key the first one that nobody has confirmed.

    With `wait_s` it is answered when there is one, or after so long without. What is not confirmed within `lease_s` is
    handed over again, with another fence. Who hangs up may have taken some: the same `take` brings them again.
    """
    wanted: Take = call.body
    receiver = _receiver(call, wanted.receiver, wanted.after)
    taking = receiver.atake(wanted.limit, lease_s=wanted.lease_s, wait_s=wanted.wait_s, take_id=wanted.take)
    found = await call.while_connected(taking) or []
    after = found[-1].key if found else wanted.after
    return Answer(200, Ends(ends=[await _told(each) for each in found], after=after))


async def confirm(call: Call) -> Answer:
    """Confirm that the receiver has this end: it is handed over no more, and the next of its key may be taken.

    It may be repeated. Late is not too late while nobody else has taken it; after that it is refused (409).
    """
    wanted: Confirm = call.body
    receiver = _receiver(call, wanted.receiver)
    job_id = call.params["id"]
    meant = job_id if wanted.fence is None else await _taken(receiver, job_id, wanted.fence)
    answer = await receiver.aconfirm(meant)
    return Answer(200, Confirmed(id=answer.job_id, replay=answer.replay))


async def release(call: Call) -> Answer:
    """Give a take up before its lease is over: anybody may take the end again after `delay_s` seconds."""
    wanted: Release = call.body
    receiver = _receiver(call, wanted.receiver)
    taken = await _taken(receiver, call.params["id"], wanted.fence)
    done = await receiver.arelease(taken, delay_s=wanted.delay_s)
    return Answer(200, Released(id=taken.job_id, released=done))


def _receiver(call: Call, name: str, after: str = "") -> Receiver:
    everywhere(call, "handovers")
    return Receiver(call.acting, name, after=after)


async def _taken(receiver: Receiver, job_id: str, fence: str) -> Handover:
    """The handover as that take had it: the statement compares, whatever was read here.

    Raises:
        HandoverNotFound: this receiver has none of that job. InvalidInput: no take answered such a fence.
    """
    found = FENCE.fullmatch(fence)
    if found is None:
        raise InvalidInput(
            f"fence is {ascii(fence)[:60]}", "no take answers such a one", "send it as it came"
        )
    known = await receiver.aget(job_id)
    return msgspec.structs.replace(known, token=int(found[1]), holder=parse_id(found[2]))


async def _told(taken: Handover) -> End:
    result, unreadable = await _result(taken)
    assert taken.state is not None
    return End(
        id=taken.job_id,
        job=taken.name,
        key=taken.key,
        state=taken.state.value,
        attempt=taken.attempt,
        ended_at=iso(taken.ended_at_us),
        result=result,
        error=_error(taken),
        unreadable=unreadable,
        fence=f"{taken.token}.{taken.holder}",
        takes=taken.token,
        free_at=iso(taken.free_at_us),
    )


async def _result(taken: Handover) -> tuple[Any, str | None]:
    """The stored bytes of the result. One that cannot be read hides no other, nor that it is there."""
    if taken.result_text is None:
        return None, None
    try:
        plain = await taken.packing.aunpack(taken.result_text.encode(), Bound.result(taken.job_id))
        msgspec.json.decode(plain, type=Any)
    except FencerowError as error:
        return None, error.code
    except (msgspec.DecodeError, UnicodeError):
        return None, MalformedPayload.code
    return msgspec.Raw(plain), None


def _error(taken: Handover) -> ErrorDocument | None:
    try:
        return error_document(taken.error)
    except MalformedPayload as error:
        return ErrorDocument(type="", message="what was stored cannot be read", code=error.code)


ROUTES = (
    Route(
        "POST", "/v1/handovers/take", "takeHandovers", take, Scope.OPERATE, {200: Ends},
        body=Take, waits=True, tag="handovers",
    ),
    Route(
        "POST", "/v1/jobs/{id}/confirm", "confirmHandover", confirm, Scope.OPERATE, {200: Confirmed},
        body=Confirm, refusals=(HandoverNotFound, HandoverLost, NotReady), tag="handovers",
    ),
    Route(
        "POST", "/v1/jobs/{id}/release", "releaseHandover", release, Scope.OPERATE, {200: Released},
        body=Release, refusals=(HandoverNotFound,), tag="handovers",
    ),
)  # fmt: skip
