"""The result of a job in place if it ends in time, else its handle: for handlers of a web application.

The bound holds for all of it, the commit of the submit too. See docs/guide/answers.md.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
from typing import Generic, TypeVar

import msgspec

from fencerow.core.app import Call
from fencerow.core.app.app import JobsApp
from fencerow.core.app.calls import checked
from fencerow.core.app.submission import Recipe
from fencerow.core.client.handle import Handle
from fencerow.core.errors import InvalidInput, ResultTimeout
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds, in_seconds, is_finite
from fencerow.db.left_tasks import done_by
from fencerow.db.text import shown
from fencerow.web.errors import AnswerBusy

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
H_co = TypeVar("H_co", covariant=True)


class Answered(msgspec.Struct, Generic[R_co], frozen=True):
    """The job has succeeded in time; `result` is what its handler returned."""

    id: str
    result: R_co


class Later(msgspec.Struct, Generic[H_co], frozen=True):
    """The job is stored and goes on; `handle` waits for its end."""

    handle: H_co


async def answer(app: JobsApp, call: Call[R], *, within_s: Seconds) -> Answered[R] | Later[Handle[R]]:
    """Submit a call, made by `job.call(...)`, and say within `within_s` seconds what came of it.

    The seconds count from here, and storing the job takes part of them. A call without `id=` and `key=` goes under an
    id that is made here, so a repeat under that id finds the job, if it was stored. A caller that is cancelled loses
    nothing: its submit goes on.

    Raises:
        AnswerBusy: the job was not known to be stored when the time was over. Its submit goes on, and comes to its end
            as the database does. `job_ids` has its id: submit again under it, or look.
        JobFailed, JobCancelled: it ended so, in time.
        InvalidInput: it is no call, is part of the caller's own transaction, or cannot be stored.
        KeyConflict, Unavailable, OutcomeUnknown and others: what `submit` raises, if it did so in time.
    """
    call, until = _identified(checked(call)), asyncio.get_running_loop().time() + checked_bound_s(within_s)
    storing = await done_by(until, app.asubmit(call), goes_on=True)
    if storing is None:
        raise busy(call.recipe.options.id, in_seconds(within_s))
    handle = storing.result()
    waiting = await done_by(until, handle.aresult(max(0.001, until - asyncio.get_running_loop().time())))
    if waiting is None or isinstance(waiting.exception(), ResultTimeout):
        return Later(handle)
    return Answered(handle.id, waiting.result())


def _identified(call: Call[R]) -> Call[R]:
    """The call under an id, so that what becomes of a submit can be found out.

    Raises:
        InvalidInput: it names a connection: its job does not begin before the caller commits.
    """
    options = call.recipe.options
    if options.connection is not None:
        raise InvalidInput(
            "the call names a connection",
            "its job begins when you have committed, so it cannot end before",
            "leave connection= out, or submit it, commit, and wait for its result",
        )
    if options.id is not None or options.key is not None:
        return call
    recipe = Recipe(call.recipe.declaration, dataclasses.replace(options, id=new_id()))
    return msgspec.structs.replace(call, recipe=recipe)


def checked_bound_s(within_s: Seconds) -> float:
    """The bound in seconds.

    Raises:
        InvalidInput: it is no time that can be waited for.
    """
    given: object = in_seconds(within_s)
    if isinstance(given, (int, float)) and is_finite(given) and 0 < given < math.inf:
        return float(given)
    raise InvalidInput(
        f"within_s is {shown(given)}", "a number of seconds above 0 is expected", "correct within_s"
    )


def busy(job_id: str | None, within_s: float) -> AnswerBusy:
    """The error when it was not known in time whether the job is stored."""
    return AnswerBusy(
        f"the job{f' {job_id}' if job_id else ''} was not stored within {within_s:g} s",
        "the database answers slowly or not at all; the job may be stored a little later",
        "submit again under the same id or key, or look the id up",
        job_ids=() if job_id is None else (job_id,),
    )
