"""A flow while it is put together: jobs with names, who waits for whom, and what follows when all have ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fencerow.core.answering import answer
from fencerow.core.app.calls import Call
from fencerow.core.app.submitter import Submitter
from fencerow.core.client.base import Verbs
from fencerow.core.client.submitting import Submits
from fencerow.core.model.control import Suspend
from fencerow.core.model.ids import new_id, new_ids
from fencerow.core.model.wakeup import FlowMoved, encode
from fencerow.core.store.hints import hints_of
from fencerow.core.verb import averb, verb
from fencerow.core.worker.attempt import lease_lost
from fencerow.core.worker.follow_ups import StoredTogether
from fencerow.db.run import Procedure, WakeUp, ask
from fencerow.db.text import check_text
from fencerow.flows.errors import FlowNameTaken, InvalidFlow
from fencerow.flows.flow_job import FlowJob
from fencerow.flows.given import awaited_names, fit_call
from fencerow.flows.graph import Policy, ordered
from fencerow.flows.inputs import FlowInputs
from fencerow.flows.looking import read_flow_results
from fencerow.flows.standing import expect_flow
from fencerow.flows.storing import Callback, Edge, Member, PlannedFlow, as_follow_up
from fencerow.flows.submitting import store_flow
from fencerow.flows.waits import note_flow_wait
from fencerow.steps.memory import Fencing

if TYPE_CHECKING:
    from fencerow.core.worker.context import Job
    from fencerow.flows.handle import FlowHandle

R = TypeVar("R")

NAME_LENGTH_MAX: Final = 200
CALLBACKS_MAX: Final = 100


@answer
class Flow(Verbs):
    """Jobs that are submitted together, of which some wait for others. Made by `app.flow(name)`; add jobs, then submit.

    A flow is submitted once. Threads must not add to one at the same time.
    """

    def __init__(self, client: Submits, submitter: Submitter, name: str, *, key: str | None = None) -> None:
        super().__init__(client)
        self._submits = client
        self.name = check_text(name, "the name of the flow", NAME_LENGTH_MAX)
        self.key = None if key is None else check_text(key, "the key of the flow", NAME_LENGTH_MAX)
        self._submitter = submitter
        self._is_awaited = False  # by a handler, which reads all results
        self._jobs: dict[str, FlowJob[Any]] = {}
        self._edges: dict[str, dict[str, Policy]] = {}
        self._stages: set[str] = set()
        self._callbacks: list[tuple[str, Call[Any]]] = []
        # Made once, so that a submit whose answer was lost can be repeated.
        self._own_id = new_id()
        self._own_ids: dict[str, str] = {}
        self._is_stored = False  # by an earlier submit of it
        self._is_handed_over = False  # to an attempt, with whose success it is stored

    def __repr__(self) -> str:
        return f"<Flow {self.name!r} of {len(self._jobs)} jobs>"

    def add(
        self,
        name: str,
        call: Call[R],
        *,
        needs: Iterable[FlowJob[Any] | str] = (),
        after: Iterable[FlowJob[Any] | str] = (),
        stage: bool = False,
    ) -> FlowJob[R]:
        """Add a job under a name of its own in this flow; it starts once all it waits for has ended.

        `needs`: these must succeed. As soon as one of them fails or is cancelled, this one is cancelled, with a reason
        that names it. `after`: these may end in any way. Both take what `add` returned, or names, which may be added
        later. `stage`: its result is that of the flow, until a later stage has one: see `FlowHandle.result`.

        Raises:
            InvalidFlow: no call, a name that cannot be kept, or options that a job of a flow cannot have.
            FlowNameTaken: the flow has a job of that name.
        """
        check_text(name, "the name of a job in a flow", NAME_LENGTH_MAX)
        if name in self._jobs:
            raise FlowNameTaken(
                f"the flow has a job {name!r} already",
                "each has a name of its own",
                "give this one another name",
            )
        self._edges[name] = self._waits_for(name, needs, after)
        self._jobs[name] = FlowJob(name, fit_call(call, f"job {name!r} of the flow"))
        if stage:
            self._stages.add(name)
        return self._jobs[name]

    def chain(self, *named: tuple[str, Call[Any]]) -> list[FlowJob[Any]]:
        """Add jobs of which each needs the one before it: `flow.chain(("fetch", fetch.call()), ("send", send.call()))`.

        Raises:
            InvalidFlow, FlowNameTaken: as `add`.
        """
        added: list[FlowJob[Any]] = []
        for name, call in named:
            added.append(self.add(name, call, needs=added[-1:]))
        return added

    def on_done(self, call: Call[Any]) -> None:
        """Make this job once all of the flow have ended, however they did.

        Raises:
            InvalidFlow: no call, options that it cannot have, or one callback too many.
        """
        self._call_back("done", call)

    def on_succeeded(self, call: Call[Any]) -> None:
        """Make this job once all of the flow have succeeded."""
        self._call_back("succeeded", call)

    def on_failed(self, call: Call[Any]) -> None:
        """Make this job once, as soon as any of the flow has failed. A job that is cancelled has not failed."""
        self._call_back("failed", call)

    @verb
    def submit(self, *, connection: object | None = None) -> Procedure[FlowHandle]:
        """Store the flow, all of it or nothing; with `connection` in the transaction that is open there.

        With a key, a flow that was submitted before stays as it is, and its handle is returned: so a repeated attempt
        of a job makes no second flow if its key is the job's id.

        Raises:
            FlowCycle, UnknownFlowJob, FlowTooLarge, InvalidFlow: it cannot be run. Nothing is stored.
            FlowConflict: another flow has the key. Nothing is stored.
            Unavailable, Busy, ReadOnly, StorageFull: nothing is stored; repeat when the cause is gone.
            OutcomeUnknown: the answer was lost, and could not be had since. Submit again: the same `Flow`, or the key.
        """
        from fencerow.flows.handle import FlowHandle

        self._refuse_handed_over()
        plan = self._plan()
        is_own = yield from store_flow(plan, self._submits, connection)
        is_new = is_own and not self._is_stored
        if is_new and connection is None:
            yield WakeUp([*hints_of(plan.ready), encode(FlowMoved())])
        self._is_stored = self._is_stored or connection is None
        return FlowHandle(self._client, plan.id, replay=not is_new)

    asubmit = averb(submit)

    def as_follow_up(self) -> StoredTogether:
        """For `job.submit_next(flow)`: it is stored whole in the transaction in which the attempt succeeds, or never.

        Raises:
            InvalidFlow: it has a key, or was handed over before. FlowCycle, UnknownFlowJob, FlowTooLarge: it cannot be
                run.
        """
        self._refuse_handed_over()
        if self.key is not None:
            raise InvalidFlow(
                f"the flow {self.name!r} has a key, and is to follow a job",
                "it is stored once, with the success of the attempt: no other can be there",
                "leave out key=; or submit it in the handler: flow.submit()",
            )
        plan = self._plan()
        self._is_handed_over = True
        expect_flow(self._submits.engine)
        return as_follow_up(plan, actor=self._submits.actor)

    def _refuse_handed_over(self) -> None:
        if self._is_handed_over:
            raise InvalidFlow(
                f"the flow {self.name!r} was handed over already",
                "it is stored with the success of that attempt",
                "put another flow together",
            )

    def run_within(self, job: Job) -> FlowInputs:
        """In a handler: run the flow as children of this job, and go on when all have ended; returns how they did.

        The job gives its slot back meanwhile: the handler ends here, and runs again from its top once the flow has
        ended. So what stands before this call happens twice, and must put the same flow together: all attempts have
        the same one. The children stay when the job is cancelled.

        Raises:
            Suspend: let it through; it is no `Exception`.
            FlowConflict: an earlier attempt put another flow together under this name.
            LeaseLost: this attempt no longer holds the job.
            InvalidFlow: the handler has a transaction open, in which it cannot wait.
            FlowCycle, UnknownFlowJob, FlowTooLarge: it cannot be run. Nothing is stored.
        """
        self._be_of(job)
        return self._run(self._within(job))

    async def arun_within(self, job: Job) -> FlowInputs:
        """`run_within` for async code."""
        self._be_of(job)
        return await self._arun(self._within(job))

    def _be_of(self, job: Job) -> None:
        if job.opened_transaction is not None:
            raise InvalidFlow(
                "a job waits for a flow inside job.transaction()",
                "the transaction would stay open as long",
                "wait first, then open the transaction",
            )
        self._refuse_handed_over()
        self._is_awaited = True
        self.key = job.id if self.key is None else self.key

    def _within(self, job: Job) -> Procedure[FlowInputs]:
        plan, fence = self._plan(), Fencing(job.id, job.holder, job.attempt)
        if (yield from store_flow(plan, self._submits, None, fence)):
            yield WakeUp([*hints_of(plan.ready), encode(FlowMoved())])
        has_ended = yield from ask(note_flow_wait(job.id, plan.id, holder=job.holder, attempt=job.attempt))
        if has_ended is None:
            raise lease_lost(job.id, job.attempt)
        if not has_ended:
            raise Suspend(f"for flow {plan.id}, which it runs")
        return FlowInputs(self._client, (yield from ask(read_flow_results(plan.id))))

    def _waits_for(
        self, name: str, needs: Iterable[FlowJob[Any] | str], after: Iterable[FlowJob[Any] | str]
    ) -> dict[str, Policy]:
        found: dict[str, Policy] = {}
        for policy, given in ((Policy.NEEDS, needs), (Policy.AFTER, after)):
            for each in awaited_names(name, policy, given):
                if found.setdefault(each, policy) is not policy:
                    raise InvalidFlow(
                        f"job {name!r} of the flow both needs {each!r} and comes after it",
                        "needs= means that it must succeed, after= that it may end in any way",
                        "name it in one of the two",
                    )
        return found

    def _call_back(self, outcome: str, call: Call[Any]) -> None:
        if len(self._callbacks) >= CALLBACKS_MAX:
            raise InvalidFlow(
                "the flow has too many callbacks",
                f"at most {CALLBACKS_MAX} are made",
                "let one submit the others",
            )
        self._callbacks.append((outcome, fit_call(call, f"a callback of the flow (on_{outcome})")))

    def _plan(self) -> PlannedFlow:
        """The flow as it is stored. With a key all ids follow from it, so that a repeat names the same jobs."""
        order = ordered(self._edges)
        flow_id, ids = self._ids([*order.names, *(f"\n{at}" for at in range(len(self._callbacks)))])
        id_of = dict(zip(order.names, ids, strict=False))
        calls = [self._jobs[name].call for name in order.names]
        stored = self._submitter.as_stored_under(ids[: len(calls)], calls)
        made = self._submitter.as_stored_under(ids[len(calls) :], [call for _, call in self._callbacks])
        return PlannedFlow(
            flow_id,
            self.name,
            self._digest(order.names),
            self._own_id,
            [each.job for each in stored],
            self._members(order.names, order.levels, id_of),
            [
                Edge(id_of[name], id_of[before], policy)
                for name in order.names
                for before, policy in self._edges[name].items()
            ],
            [
                Callback(each.job.id, outcome, each.job)
                for each, (outcome, _) in zip(made, self._callbacks, strict=True)
            ],
        )

    def _members(self, names: Sequence[str], levels: Any, id_of: dict[str, str]) -> list[Member]:
        is_all_read = bool(self._callbacks) or self._is_awaited
        read = {before for edges in self._edges.values() for before in edges} | self._stages
        return [
            Member(
                id_of[name],
                name,
                self._jobs[name].call.recipe.declaration.name,
                place,
                levels[name],
                name in self._stages,
                is_all_read or name in read,
            )
            for place, name in enumerate(names)
        ]

    def _ids(self, names: Sequence[str]) -> tuple[str, list[str]]:
        if self.key is None:
            missing = [name for name in names if name not in self._own_ids]
            self._own_ids |= zip(missing, new_ids(len(missing)), strict=True)
            return self._own_id, [self._own_ids[name] for name in names]
        return derived_id(self.name, self.key), [derived_id(self.name, self.key, name) for name in names]

    def _digest(self, names: Sequence[str]) -> str:
        found = hashlib.sha256()
        for name in names:
            found.update(f"{name!r} {self._edges[name]} {_print_of(self._jobs[name].call)}\n".encode())
        for outcome, call in self._callbacks:
            found.update(f"{outcome} {_print_of(call)}\n".encode())
        return found.hexdigest()


def derived_id(*parts: str) -> str:
    """The id that follows from these texts: a UUID of version 8."""
    digest = hashlib.sha256("\0".join(("fencerow.flow", *parts)).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def _print_of(call: Call[Any]) -> str:
    declaration = call.recipe.declaration
    return declaration.handler.packing.fingerprint(declaration.name, call.args)
