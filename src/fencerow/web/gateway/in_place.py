"""A submit that is answered with the end of its job, where that comes in time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from fencerow.core.client.handle import Handle
from fencerow.core.errors import FencerowError, JobCancelled, JobFailed
from fencerow.core.model.state import State
from fencerow.db.left_tasks import done_by
from fencerow.web.errors import NotAllowed
from fencerow.web.gateway.looking import json_of, waiting_s
from fencerow.web.gateway.route import Call
from fencerow.web.gateway.shapes import error_document
from fencerow.web.tokens.scope import Scope

AGAIN_S = 60  # how long the address in the answer waits
OVER_S = 0.25  # for the last look
RETRY_AFTER_S = "1"  # for who looks without waiting


def until(call: Call) -> float | None:
    """Until when the caller waits for the job's end, by the event loop's clock; None: not at all.

    Raises:
        NotAllowed: the query asks to wait, and the token may read nothing. A preference is passed over then.
    """
    wait_s = waiting_s(call)
    if not wait_s:
        return None
    if call.grant.may(Scope.READ):
        return asyncio.get_running_loop().time() + wait_s
    if call.query.wait:
        raise NotAllowed(
            "the token lacks the scope read",
            "to wait for a result is to read it",
            "use a token that has it, or submit without `wait`",
        )
    return None


async def end_by(call: Call, job_id: str, until_s: float) -> dict[str, Any] | None:
    """How the job ended; None if that is not known by then. Why a result cannot be read is told where it is asked for.

    The time that storing took is part of the wait. One look is always made.
    """
    wait_s = max(0.001, until_s - asyncio.get_running_loop().time())
    handle = Handle(call.client, job_id, bytes)
    try:
        looked = await done_by(until_s + OVER_S, call.while_connected(handle.aresult(wait_s)))
        found = None if looked is None else looked.result()
        if found is None:
            return None
        return {"state": str(State.SUCCEEDED), "result": msgspec.Raw(json_of(job_id, found))}
    except JobFailed as error:
        told = {name: getattr(error.error, name) for name in ("type", "message", "code")}
        return {"state": str(State.FAILED), "error": error_document(told)}
    except JobCancelled:
        return {"state": str(State.CANCELLED)}
    except FencerowError:
        return None
