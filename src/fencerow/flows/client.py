"""`client.flows`: find flows again, and read what a job of one waited for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fencerow.core.client.base import ClientBase, Verbs
from fencerow.core.client.refs import Ref, resolving
from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import parse_id
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.db.text import shown
from fencerow.flows.errors import FlowNotFound
from fencerow.flows.handle import FlowHandle
from fencerow.flows.inputs import FlowInputs
from fencerow.flows.looking import FlowPlace, FlowRecord, flow_of_job, list_flows, read_flow_inputs
from fencerow.flows.reach import list_flows_within

if TYPE_CHECKING:
    from fencerow.core.app.submitter import Submitter
    from fencerow.core.client.submitting import Submits
    from fencerow.flows.builder import Flow

LIMIT_MAX = 10_000


class FlowVerbs(Verbs):
    """Finds flows, and reads the results that a job of one waited for. Each method has an async twin with an `a` in
    front."""

    def __init__(self, client: ClientBase) -> None:
        super().__init__(client)

    def handle(self, flow_id: str) -> FlowHandle:
        """A handle for the flow of this id. Does not use the database yet.

        Raises:
            InvalidInput: it is no id.
        """
        return FlowHandle(self._client, parse_id(flow_id))

    @verb
    def of(self, job: Ref) -> Procedure[FlowHandle]:
        """The flow to which a job belongs, as one of its jobs or as a callback.

        Raises:
            FlowNotFound: it belongs to none.
        """
        job_id = yield from resolving(job)
        found = yield from ask(flow_of_job(job_id))
        if found is None:
            raise FlowNotFound(
                f"job {job_id} belongs to no flow",
                "it was submitted alone, or its flow was removed",
                "check the id",
            )
        return FlowHandle(self._client, found)

    aof = averb(of)

    @verb
    def inputs(self, job: Ref) -> Procedure[FlowInputs]:
        """How those ended for which a job of a flow waited, with their results; of a callback all jobs of its flow.

        A handler asks with its own id: `await app.flows.ainputs(job.id)`. Of a job that waited for none it is empty.
        """
        job_id = yield from resolving(job)
        return FlowInputs(self._client, (yield from ask(read_flow_inputs(job_id))))

    ainputs = averb(inputs)

    @verb
    def known(
        self,
        *,
        live: bool = False,
        name: str | None = None,
        queues: Iterable[str] | None = None,
        before: FlowRecord | FlowPlace | None = None,
        limit: int = 50,
    ) -> Procedure[list[FlowRecord]]:
        """A page of flows, the newest first. `live`: only those that have not ended; `name`: only those of this name;
        `queues`: only those whose jobs and callbacks were all submitted to these queues, and whose jobs all are there.
        Pass the last one of a page as `before` to get the next.

        Raises:
            InvalidInput: the limit is not from 1 to 10,000.
        """
        if not 1 <= limit <= LIMIT_MAX:
            raise InvalidInput(f"limit is {shown(limit)}", f"a number from 1 to {LIMIT_MAX} is expected", "")
        if queues is None:
            return (yield from ask(list_flows(live=live, name=name, before=before, limit=limit)))
        return (yield from ask(list_flows_within(queues, live=live, name=name, before=before, limit=limit)))

    aknown = averb(known)


def flow_of(client: Submits, submitter: Submitter, name: str, key: str | None) -> Flow:
    """A flow to put together; see `App.flow`."""
    from fencerow.flows.builder import Flow

    return Flow(client, submitter, name, key=key)
