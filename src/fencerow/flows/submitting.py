"""A flow on its way into the database: whole or not at all, and when the answer is lost, what became of it."""

from __future__ import annotations

from typing import Final

from fencerow.core.client.forms import COPY_ROWS_MIN
from fencerow.core.client.submitting import Submits
from fencerow.core.errors import Busy, InvalidInput, OutcomeUnknown, Unavailable
from fencerow.core.model.submission import Submission
from fencerow.db.run import Operation, Pause, Procedure, ask, joining
from fencerow.flows.storing import PlannedFlow, submit_flow, submit_flow_within
from fencerow.steps.memory import Fencing

# Seconds between tries to learn what became of a submit.
PATIENCE: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 1.0, 1.0)


def store_flow(
    plan: PlannedFlow, client: Submits, connection: object | None, fence: Fencing | None = None
) -> Procedure[bool]:
    """Store the flow, with the limits that the app declares and nobody has made yet. `fence`: of whose run it is.

    Returns whether this submit stored it, now or by an earlier try whose answer was lost.
    """
    try:
        return (yield from _stored_surely(plan, client, connection, fence))
    except InvalidInput as error:
        submissions = [Submission(job) for job in plan.jobs]
        if client.mend is None or not (yield from client.mend(error, submissions)):
            raise
        return (yield from _stored_surely(plan, client, connection, fence))


def _stored_surely(
    plan: PlannedFlow, client: Submits, connection: object | None, fence: Fencing | None
) -> Procedure[bool]:
    """Store the flow; when the answer is lost, look again for a while: the flow's row tells."""
    copies = connection is None and client.engine.traits.takes_copy and len(plan.jobs) >= COPY_ROWS_MIN
    storing = joining(_storing(plan, fence, client.actor, copies=copies), connection)
    try:
        return (yield from ask(storing))
    except OutcomeUnknown as error:
        doubt = error
    if connection is None:
        for pause_s in PATIENCE:
            yield Pause(pause_s)
            try:
                return (yield from ask(storing))
            except (OutcomeUnknown, Unavailable, Busy):
                continue
    raise doubt


def _storing(plan: PlannedFlow, fence: Fencing | None, actor: str | None, *, copies: bool) -> Operation[bool]:
    if fence is None:
        return submit_flow(plan, actor=actor, copies=copies)
    return submit_flow_within(plan, fence, actor=actor, copies=copies)
