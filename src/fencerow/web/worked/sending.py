"""The request by which an attempt is handed to its endpoint: made once, signed byte for byte, sent once."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from fencerow.core.worker.context import Job
from fencerow.traces.carrying import sent_along
from fencerow.web.webhooks.addresses import Allowed
from fencerow.web.webhooks.body import iso
from fencerow.web.webhooks.errors import PostFailed
from fencerow.web.webhooks.posting import ReceiverReply, post
from fencerow.web.webhooks.signing import Signer, signed_headers
from fencerow.web.worked.endpoint import WorkedEndpoint
from fencerow.web.worked.errors import WorkedFailed
from fencerow.web.worked.token import AttemptToken

TYPE: Final = "job.run"


def message_id(job_id: str, attempt: int) -> str:
    """The `webhook-id`: the same whenever this attempt is sent, and no other's."""
    return f"{job_id}:{attempt}"


def body_of(
    job: Job, args: bytes, endpoint: WorkedEndpoint, token: AttemptToken | None, now: datetime
) -> bytes:
    """The JSON text: `type`, `timestamp`, `data`, as webhooks have it."""
    remaining_s = job.remaining_s
    data: dict[str, Any] = {
        "job": job.id,
        "name": job.name,
        "queue": job.queue,
        "attempt": job.attempt,
        "failures": job.failures,
        "attempts_max": job.attempts_max,
        "args": msgspec.Raw(args),
        "tags": list(job.tags),
        "metadata": dict(job.metadata),
        "submitted_at": iso(job.submitted_at),
        "deadline_at": None if remaining_s is None else iso(now + timedelta(seconds=remaining_s)),
        "callback": _callback(job, endpoint, token),
    }
    return msgspec.json.encode({"type": TYPE, "timestamp": iso(now), "data": data})


async def sent(
    job: Job,
    args: bytes,
    endpoint: WorkedEndpoint,
    signers: list[Signer],
    token: AttemptToken | None,
    allow: Allowed,
) -> ReceiverReply:
    """Send the attempt, and wait for the reply.

    Raises:
        WorkedFailed: there is none.
    """
    now = datetime.now(UTC)
    body = body_of(job, args, endpoint, token, now)
    headers = {
        **signed_headers(message_id(job.id, job.attempt), int(time.time()), body, signers),
        **sent_along(job.headers),
    }
    try:
        return await post(
            endpoint.url,
            body,
            headers,
            timeout_s=endpoint.patience_s(job.remaining_s),
            allow=allow,
            kept_bytes=endpoint.reply_bytes_max,
        )
    except PostFailed as error:
        raise WorkedFailed(
            error.what.replace("the receiver", "the endpoint"),
            error.why,
            "look whether it runs, and what stands between",
        ) from None


def _callback(job: Job, endpoint: WorkedEndpoint, token: AttemptToken | None) -> dict[str, Any] | None:
    if token is None:
        return None
    return {
        "url": endpoint.callback_of(job.id, job.attempt),
        "token": token.text,
        "answer_s": endpoint.answer_s,
        "heartbeat_s": endpoint.silent_s,
    }
