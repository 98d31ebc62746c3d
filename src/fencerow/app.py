"""`App`: the jobs of the core, and what the wings give to an app."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, Unpack, cast

from fencerow.client import Client
from fencerow.config import Config
from fencerow.core.answering import answer
from fencerow.core.app import Call, Draft, LocalDatabaseWarning, UntypedParameters
from fencerow.core.app.job_options import HandlingOptions
from fencerow.core.app.submitter import Submittable
from fencerow.core.config import CoreConfig
from fencerow.core.lazy import lazily
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.telemetry import Telemetry
from fencerow.declaring import Declare, DeclaredJob
from fencerow.flows.settings import FlowSettings
from fencerow.limits.appside import LimitedApp
from fencerow.payloads.settings import PayloadSettings

if TYPE_CHECKING:
    from fencerow.batches.item import BatchMiddleware
    from fencerow.contracts import Contract, Handles
    from fencerow.core.chore import Chore
    from fencerow.core.wing import Check
    from fencerow.declaring_batch import DeclareBatch
    from fencerow.flows.builder import Flow
    from fencerow.flows.client import FlowVerbs
    from fencerow.handovers.options import HandoverTo
    from fencerow.limits import Limit
    from fencerow.options import GivenOptions
    from fencerow.payloads.outside.owner import OwnStore
    from fencerow.payloads.outside.store import PayloadStore
    from fencerow.payloads.seals import PayloadSeal, PayloadSign
    from fencerow.schedules.appside import AppSchedules, Program
    from fencerow.schedules.declared import Declarations, Entities
    from fencerow.schedules.options import ScheduleOptions
    from fencerow.unique.options import Unique
else:
    __getattr__ = lazily(
        __name__, {"HandoverTo": "fencerow.handovers.options", "Unique": "fencerow.unique.options"}
    )

__all__ = [
    "App",
    "Call",
    "DeclaredJob",
    "Draft",
    "HandoverTo",
    "LocalDatabaseWarning",
    "Unique",
    "UntypedParameters",
]


P = ParamSpec("P")
R = TypeVar("R")


@answer
class App(LimitedApp):
    """The jobs of one program, and the database that keeps them.

    `url` names the database, else `config`, else FENCEROW_URL. Without any of them it is the SQLite file
    `fencerow.db` in the working directory, and you get a `LocalDatabaseWarning`. Nothing is opened before it
    is needed. In a SQLite file the tables are created by themselves; on PostgreSQL run `fencerow migrate`
    once.

    `defaults` apply to all jobs, `queues` to the jobs of one queue. An option in a job's declaration wins
    over both, and an option of a submit wins over all. `limits` are made, or changed to a higher version, when
    a worker is made; `declare_limits` does so sooner, and a submit that names one which nobody made makes it.
    `seal` encrypts or signs arguments and results: `Seal` or `Sign` of `fencerow.payloads`, or your own. `outside`: a
    store of your own for large ones, instead of `outside_store`.
    Close the app when done, or use it as a context manager.

    Raises:
        ConfigError: a setting cannot be used. UrlError: the URL names no database that Fencerow can use.
        LimitConflict: one limit is declared in two ways.
    """

    client_type = Client
    job_type = DeclaredJob
    config: Config
    job: Declare
    _outside: OwnStore | None = None

    def __init__(
        self,
        url: str | None = None,
        *,
        config: Config | None = None,
        schema: str | None = None,
        table_prefix: str | None = None,
        defaults: Defaults | None = None,
        queues: Mapping[str, Defaults] | None = None,
        limits: Sequence[Limit] = (),
        actor: str | None = None,
        telemetry: Telemetry | None = None,
        seal: PayloadSeal | PayloadSign | None = None,
        outside: PayloadStore | None = None,
    ) -> None:
        super().__init__(
            url,
            config=config,
            schema=schema,
            table_prefix=table_prefix,
            defaults=defaults,
            queues=queues,
            actor=actor,
            telemetry=telemetry,
            packing=self._stored_by(seal, outside),
        )
        self.job = Declare(self._declarer)
        self._declared_schedules: Declarations | None = None
        self._limit_by(limits)

    @property
    def client(self) -> Client:
        """Reads stored jobs, waits for them and changes their state; `workers` and `mutexes` are for operators."""
        made = super().client
        assert isinstance(made, Client)
        if self._limits and made.mend is None:
            from fencerow.limits.client import making_missing

            made.mend = partial(making_missing, self._limits, self.actor)
        return made

    @property
    def batch_job(self) -> DeclareBatch:
        """Declare a job of which one call runs many: see `DeclareBatch`."""
        from fencerow.declaring_batch import DeclareBatch  # who has no batches never loads it

        return DeclareBatch(self._declarer)

    @property
    def jobs(self) -> Mapping[str, DeclaredJob[..., ..., Any, Any]]:
        """The declared jobs by name."""
        return cast("Mapping[str, DeclaredJob[..., ..., Any, Any]]", super().jobs)

    def declare(self, contract: Contract[P, R]) -> DeclaredJob[..., P, R, NoReturn]:
        """Declare a job that another program runs, so that this one can submit it.

        Raises:
            DeclarationError: its name is taken, or its types cannot be stored.
        """
        from fencerow.contracts import declared_apart  # who has none never loads it

        return declared_apart(self._declarer, contract)  # type: ignore[no-any-return]

    def handles(self, contract: Contract[P, R], **given: Unpack[HandlingOptions]) -> Handles[P, R]:
        """Decorate the function that runs the job of a contract. It must have the types of the contract.

        Raises:
            DeclarationError: the types differ, the name is taken, or an option is wrong.
        """
        from fencerow.contracts import Handles, handling_options

        return Handles(self._declarer, contract, handling_options(contract, given))

    def on_batch(self, middleware: BatchMiddleware) -> BatchMiddleware:
        """Wrap every call of a batch handler with an async function. It gets the items and the function to call next.

            @app.on_batch
            async def timed(items, call_next):
                with timer(items[0].name, len(items)):
                    await call_next()

        The first one declared is the outermost. The middleware gets the same items as the handler, and may
        say their outcomes too. An exception from it counts as raised by the handler: it decides about all
        items that have no outcome yet. If it returns without calling the next function, these items succeed
        with None.
        """
        self._batch_middleware.append(middleware)
        return middleware

    @property
    def flows(self) -> FlowVerbs:
        """Flows as they are stored: find one, look at it, read what a job of one waited for. `flow` makes one."""
        return self.client.flows

    def flow(self, name: str, *, key: str | None = None) -> Flow:
        """Put jobs together of which some wait for others: add them, then submit the flow as a whole.

            flow = app.flow("report")
            pages = [flow.add(f"page {n}", fetch.call(n)) for n in range(10)]
            flow.add("join", join.call(), needs=pages)
            flow.submit()

        `key`: flows of one name and one key are one flow. A handler that gives its job's id makes one flow in all its
        attempts.

        Raises:
            InvalidInput: the name or the key cannot be kept.
        """
        from fencerow.flows.client import flow_of  # who has none never loads it

        return flow_of(self.client, self._submitter, name, key)

    def saga(
        self,
        job: DeclaredJob[..., ..., Any, Any],
        *,
        undo: Sequence[Callable[[Any], Any]],
        **given: Unpack[GivenOptions],
    ) -> DeclaredJob[..., ..., list[str], Any]:
        """Let the steps of a job be undone if it ends without success, in whatever way, the last one first.

            app.saga(order, undo=[refund, free_room])
            paid = await job.step("charge", charge, number, undo=refund)      # in the handler of `order`

        All that is remembered with an `undo` is undone by one job, the compensation, which is stored in the transaction
        of the end. It is called like the other one with ".undo" behind, and goes to the same queue. `given` are its
        options, as of `app.job`. Each of its steps is remembered. It is retried, and can be revived, as every job.
        `undo`: functions, plain or async, that take the result of a step. May one run twice, as each step may after a
        crash, then it must do no harm.

        Raises:
            InvalidSaga: the job is a batch handler, has a saga already or runs elsewhere; or a function has no name of
                its own, or takes something else than one argument.
        """
        from fencerow.saga.declaring import declare_saga  # who undoes nothing never loads it
        from fencerow.saga.teller import Teller

        declared = declare_saga(self.job, self._submitter, lambda: self.engine, job, undo, dict(given))
        if not any(isinstance(each, Teller) for each in self.chores):
            self.add_chore(Teller(lambda: self.client.engine))
        return declared  # type: ignore[no-any-return]

    @property
    def schedules(self) -> AppSchedules:
        """Schedules as they are stored: put, look at, pause, run now. `schedule` declares them in code."""
        from fencerow.schedules.appside import AppSchedules  # who schedules nothing never loads it

        return AppSchedules(self.client, self._program())

    def schedule(
        self,
        work: Submittable[Any, Any] | Call[Any],
        name: str | None = None,
        *,
        entities: Entities | None = None,
        **given: Unpack[ScheduleOptions],
    ) -> None:
        """Declare that a job is submitted again and again: `app.schedule(report, cron="0 3 * * *")`.

        `work` is a declared job, or a call of one: `job.call(...)`, `job.using(...)`. `name` is by default the job's.
        Workers make what is declared when they start, and remove what is declared no longer. What people made stays.

        `entities`: a function, sync or async, that lists what the schedule has a row for: names, for which the job is
        called with the name, or `Entity(...)`. One worker at a time asks it again and again. A vanished entity's row
        goes; an empty list, or an error, changes nothing.

        When (`ScheduleOptions`): `cron` with `tz`, or `rate` `per` "minute", "hour" or "day", or `interval_s`; with
        `phase_s` and `jitter_s`. `misfire` says what becomes of fires that were missed: "one" (the latest), "skip", or
        "all", at most `catchup_max` in one pass. `overlap`: "skip" makes no job while an earlier one has not ended;
        "allow", which is usual with "all", does; "queue" makes one that waits until those before it have ended.

        Raises:
            InvalidSchedule, UnknownZone: it says nothing that can work. ScheduleTaken: the name is declared already.
            InvalidArguments: the job needs arguments that it was not given.
        """
        from fencerow.schedules.appside import declare

        declare(self._declarations(), self._submitter, work, name, entities, given)

    @property
    def declares_schedules(self) -> bool:
        """Whether this program declares any schedule."""
        return self._declared_schedules is not None

    def _declarations(self) -> Declarations:
        from fencerow.schedules.declared import Declarations

        if self._declared_schedules is None:
            self._declared_schedules = Declarations()
        return self._declared_schedules

    def _program(self) -> Program:
        from fencerow.schedules.appside import program_of

        return program_of(self._submitter, self._declarations(), self.config, self.jobs)

    def _standing(self) -> Sequence[Chore]:
        from fencerow.schedules.standing import schedule_chores

        chores: list[Chore] = schedule_chores(
            lambda: self.client, self.config, self.telemetry, self._program, lambda: self.declares_schedules
        )
        if FlowSettings.of(self.config).flows == "on":
            from fencerow.flows.standing import flow_chore

            chores.append(flow_chore(lambda: self.client.engine, self.telemetry))
        if self._outside is not None:
            from fencerow.payloads.outside.chore import OutsideSweep

            chores.append(OutsideSweep(lambda: self.client, self._outside, self.config.outside_orphan_s))
        return chores

    def _stored_by(
        self, seal: PayloadSeal | PayloadSign | None, outside: PayloadStore | None
    ) -> Callable[[CoreConfig], Packing]:
        """How payloads are stored, by what the settings say of large ones."""

        def packing(config: CoreConfig) -> Packing:
            inside = PLAIN if seal is None else _sealed_by(seal)
            if outside is None and PayloadSettings.of(config).outside_store is None:
                return inside
            from fencerow.payloads.appside import packing_and_store  # who keeps none outside never loads it

            kept, self._outside = packing_and_store(config, inside, outside, self.check_or_create)
            return kept

        return packing

    def checks(self) -> Sequence[Check]:
        """What `fencerow doctor -A` looks at, in place of its checks of these names, which know settings alone."""
        if self._outside is None:
            return ()
        from fencerow.payloads.outside.checks import check_of

        return (check_of(self._outside),)

    def check_or_create(self) -> None:
        """Like `check`, but on SQLite create missing tables. This happens by itself before the first use."""
        super().check_or_create()
        if self._outside is not None:
            from fencerow.payloads.outside.owner import database_of_payloads

            # Now, and not at the first put: a transaction that is open then may be the file's only writer.
            self._outside.told(self.engine.run(database_of_payloads()))

    def pause_queue(self, queue: str, *, reason: str | None = None) -> bool:
        """Stop claims from a queue, also across restarts: see `Client.pause_queue`."""
        return self.client.pause_queue(queue, reason=reason)

    def resume_queue(self, queue: str) -> bool:
        """Allow claims from a queue again: see `Client.resume_queue`."""
        return self.client.resume_queue(queue)


def _sealed_by(seal: PayloadSeal | PayloadSign) -> Packing:
    from fencerow.payloads.packings import packing_of  # who seals and signs nothing never loads it

    return packing_of(seal)
