"""A flow, or a job of one, or the error that says what is not there."""

from __future__ import annotations

from fencerow.db.run import Procedure, ask
from fencerow.db.text import shown
from fencerow.flows.errors import FlowNotFound, UnknownFlowJob
from fencerow.flows.looking import FlowJobRecord, FlowRecord, read_flow, read_flow_job


def reading_flow(flow_id: str) -> Procedure[FlowRecord]:
    """The flow as it stands.

    Raises:
        FlowNotFound: it is not there.
    """
    found = yield from ask(read_flow(flow_id))
    if found is None:
        raise flow_not_found(flow_id)
    return found


def flow_not_found(flow_id: str) -> FlowNotFound:
    """The error for a flow that is not there."""
    return FlowNotFound(
        f"there is no flow {flow_id}",
        "the id is unknown, the transaction that submits it has not committed, or it was removed after its end",
        "`fencerow flows` shows those that there are; flow_retention_s says how long they are kept",
    )


def reading_flow_job(flow_id: str, name: str) -> Procedure[FlowJobRecord]:
    """One job of a flow by its name there.

    Raises:
        UnknownFlowJob: it has no job of that name. FlowNotFound: it is not there.
    """
    found = yield from ask(read_flow_job(flow_id, name))
    if found is None:
        yield from reading_flow(flow_id)
        raise UnknownFlowJob(
            f"flow {flow_id} has no job {shown(name)}",
            "a job of a flow is named as it was added",
            f"`fencerow flows show {flow_id}` has the names",
        )
    return found
