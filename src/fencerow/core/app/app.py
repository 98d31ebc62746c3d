"""`JobsApp`: declares jobs, holds the settings, submits, and hands out clients and workers. Users meet it as `App`."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from fencerow.core.answering import answering
from fencerow.core.app.calls import Call, checked, stored_arguments
from fencerow.core.app.database import Database
from fencerow.core.app.declare import NO_OPTIONS, DeclareBase, DeclaredBase, Declarer
from fencerow.core.app.given import check_given
from fencerow.core.app.options import SubmitOptions, submit_options
from fencerow.core.app.submission import Layers, SubmitGenerator
from fencerow.core.app.submitter import Submitter
from fencerow.core.chore import Chore, Ticking, chore_of
from fencerow.core.client.client import JobsClient
from fencerow.core.client.handle import Handle
from fencerow.core.config import CoreConfig
from fencerow.core.errors import DeclarationError, InvalidArguments
from fencerow.core.locator import check_tables
from fencerow.core.model.change import NewArguments
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.habits import no_attribute
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import NewJob
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.middleware import Middleware, RunMiddleware, TogetherMiddleware

if TYPE_CHECKING:
    from fencerow.core.worker.plain import Worker

R = TypeVar("R")


def _plain(_config: CoreConfig) -> Packing:
    return PLAIN


class JobsApp(Database):
    """An app as far as jobs go, without what the wings give it. See `App`."""

    client_type = JobsClient
    job_type: type[DeclaredBase[..., ..., Any, Any]] = DeclaredBase

    def __init__(
        self,
        url: str | None = None,
        *,
        config: CoreConfig | None = None,
        schema: str | None = None,
        table_prefix: str | None = None,
        defaults: Defaults | None = None,
        queues: Mapping[str, Defaults] | None = None,
        actor: str | None = None,
        telemetry: Telemetry | None = None,
        packing: Callable[[CoreConfig], Packing] = _plain,
    ) -> None:
        check_given(config, defaults, queues, telemetry)
        super().__init__(url, config=config, schema=schema, table_prefix=table_prefix, actor=actor)
        self.telemetry = telemetry or Telemetry()
        layers = Layers(
            Defaults.merged(self.config.job_defaults(), defaults or Defaults()),
            dict(queues or {}),
            self.config.key_lifetime_s,
        )
        self._submitter = Submitter(lambda: self.client, layers, self.actor, self.telemetry)
        self._packing = packing(self.config)
        self._declarer = declarer = Declarer(
            self._submitter,
            self._register,
            layers,
            self.config.payload_bytes_max,
            self._packing,
            self.job_type,
        )
        self.job = DeclareBase(declarer)
        self._jobs: dict[str, DeclaredBase[..., ..., Any, Any]] = {}
        self._run_middleware: list[RunMiddleware] = []
        self._batch_middleware: list[TogetherMiddleware] = []
        self._middleware = Middleware(  # as it grows
            self._run_middleware, self._batch_middleware, self._submitter.as_follow_up
        )
        self._chores: list[Chore] = []

    # --- what it is made of ------------------------------------------------------------------------

    @property
    def jobs(self) -> Mapping[str, DeclaredBase[..., ..., Any, Any]]:
        """The declared jobs by name."""
        return MappingProxyType(self._jobs)

    @property
    def handlers(self) -> dict[str, Handler]:
        """What workers run, by job name."""
        return {name: job.handler for name, job in self._jobs.items() if job.runs_here}

    @property
    def client(self) -> JobsClient:
        """Looks at, waits for and moves the jobs that are stored."""
        with self._opening:
            client = self._submitter.client
            if client is None:
                client = self._submitter.client = self.client_type(
                    self.engine, actor=self.actor, telemetry=self.telemetry, ready=partial(check_tables, self)
                )
                client.encode_arguments = self.encode_arguments
                client.packing = self._packing
            return client

    # --- submitting --------------------------------------------------------------------------------

    def submit(self, call: Call[R]) -> Handle[R]:
        """Submit one call, made by `job.call(...)`. `job.submit(...)` is the short form.

        Raises:
            InvalidInput: it is no call, or cannot be stored; see its subclasses. Nothing is stored.
            KeyConflict: the key belongs to another payload.
            OutcomeUnknown: the answer was lost. `job_ids` holds the id: look, or `using(id=...)` again.
        """
        return self._submitter.submit(checked(call))

    async def asubmit(self, call: Call[R]) -> Handle[R]:
        """`submit` for async code."""
        return await self._submitter.asubmit(checked(call))

    def submit_many(self, calls: Iterable[Call[R]]) -> list[Handle[R]]:
        """Submit many calls, each made by `job.call(...)` or `job.using(...).call(...)`, in their order.

        They are stored in chunks of at most 1,000 calls and 4 MiB. Each chunk is atomic. If one is refused,
        the chunks before it are stored and those after it are not. Keys and rules are the same as for single
        submits.

        Raises:
            InvalidInput, KeyConflict: of the first call that is refused; see `submit`.
            OutcomeUnknown: the answer for a chunk was lost. `job_ids` holds its ids.
        """
        return self._submitter.submit_many(calls)

    async def asubmit_many(self, calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> list[Handle[R]]:
        """`submit_many` for async code; takes an async iterable too."""
        return await self._submitter.asubmit_many(calls)

    def call_by_name(
        self, name: str, arguments: Mapping[str, Any] | None = None, options: SubmitOptions = NO_OPTIONS
    ) -> Call[Any]:
        """Make a call of the job of that name. The arguments are JSON data from outside.

        Raises:
            UnknownJob: no such job is declared here; the closest names are shown.
            InvalidArguments: they do not fit the job's parameters.
        """
        job = self._jobs.get(name)
        if job is None:
            from fencerow.core.app.unknown import unknown_job

            raise unknown_job(name, list(self._jobs))
        if arguments is not None and not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArguments(
                f"the arguments of {name} are of type {type(arguments).__name__}",
                "a mapping is expected, from the names of parameters to JSON data",
                'pass {"parameter": value}',
            )
        return job.call_with(arguments or {}, options)

    def submit_by_name(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any
    ) -> Handle[Any]:
        """Submit the job of that name; `options` are those of `using`. For programs that do not have the
        job's function."""
        return self.submit(self.call_by_name(name, arguments, submit_options(**options)))

    async def asubmit_by_name(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any
    ) -> Handle[Any]:
        """`submit_by_name` for async code."""
        return await self.asubmit(self.call_by_name(name, arguments, submit_options(**options)))

    def submits_as(self, actor: str) -> Submitter:
        """What submits calls of this app in the name of somebody else: for programs that act for others."""
        return self._submitter.named(actor)

    def encode_arguments(self, name: str, arguments: Mapping[str, Any]) -> NewArguments:
        """The arguments to store for the job of that name, checked by its declaration as `call_by_name` does it."""
        return stored_arguments(self.call_by_name(name, arguments))

    def as_stored(self, call: Call[Any]) -> NewJob:
        """What a submit of this call would store, without an id and without what submit middleware adds.

        Raises:
            InvalidInput: the job would expire before it is due.
        """
        return self._submitter.as_stored(checked(call))

    # --- middleware --------------------------------------------------------------------------------

    def on_submit(self, generator: SubmitGenerator) -> SubmitGenerator:
        """Wrap every submit with a generator function. It gets the `Draft` and yields once, while the job is stored.

            @app.on_submit
            def correlate(draft):
                draft.headers["correlation-id"] = current_id()
                yield

        The first one declared is the outermost. An exception from it reaches the caller; before the `yield`
        nothing is stored yet.
        """
        self._submitter.middleware.append(contextmanager(generator))
        return generator

    def on_run(self, middleware: RunMiddleware) -> RunMiddleware:
        """Wrap every run in this app's workers with an async function. It gets the job and the function to call next.

            @app.on_run
            async def timed(job, call_next):
                with timer(job.name):
                    return await call_next()

        The first one declared is the outermost. An exception from it is the attempt's failure. It does not
        wrap batches: see `on_batch`.
        """
        self._run_middleware.append(middleware)
        return middleware

    # --- workers -----------------------------------------------------------------------------------

    @answering
    def worker(
        self,
        queues: Mapping[str, int] | Sequence[str] | None = None,
        *,
        slots: int | None = None,
        name: str | None = None,
        labels: Sequence[str] | None = None,
        ends_process: bool = True,
        without: Collection[str] = (),
    ) -> Worker:
        """Make a worker for these queues, or for those of all declared jobs: `async with app.worker(): ...`.

        `queues` may give each queue slots of its own; then `slots` is refused. Otherwise the queues use
        `slots`, by default the setting. The log warns of a queue to which no declared job goes. The
        database's tables are checked first, see `check_or_create`. If a handler blocks the event loop
        beyond its time limit and `cancel_kill_s`, the worker ends this process; without `ends_process` it
        only reports the handler. `labels`: it takes the jobs whose `affinity` names one of them, by default
        those of the setting. `without`: the names of chores that this worker leaves to others.

        Raises:
            DeclarationError: no job is declared, so the worker has nothing to run.
            InvalidInput: a queue's name or a label cannot be used, or slots are given twice.
        """
        if not self.handlers and not self._chores:
            raise DeclarationError(
                "this app has no handler for any job",
                "a worker needs at least one handler",
                "declare a job with @app.job, and import the module that declares it",
            )
        from fencerow.core.app.serving import carrying, served_queues, warn_of_unwrapped
        from fencerow.core.worker.plain import Worker  # who only submits never loads it

        own = {job.queue for job in self._jobs.values() if job.runs_here}
        served = served_queues(queues, slots, own, self._submitter.layers.queues)
        if self._run_middleware and not self._batch_middleware:
            warn_of_unwrapped(self._jobs.values())
        self.check_or_create()
        self._prepare()
        return Worker(
            self.engine,
            self.handlers,
            served,
            carrying(self.config, labels),
            self.telemetry,
            replace(self._middleware, run=tuple(self._run_middleware), batch=tuple(self._batch_middleware)),
            slots=slots,
            name=name,
            chores=self.chores_of_worker(without),
            ends_process=ends_process,
        )

    def add_chore(self, chore: Chore | Ticking) -> None:
        """Let every worker of this app do a chore beside its jobs. Call this before you make the workers.

        Raises:
            DeclarationError: it has no name, or no `tick`.
        """
        self._chores.append(chore_of(chore))

    @property
    def chores(self) -> Sequence[Chore]:
        """What this app's workers do besides their jobs."""
        return tuple(self._chores)

    def chores_of_worker(self, without: Collection[str] = ()) -> Sequence[Chore]:
        """All that one worker does beside its jobs, with what wings bring whatever the app declares; but not these."""
        return [each for each in (*self._chores, *self._standing()) if each.name not in without]

    def _standing(self) -> Sequence[Chore]:
        """What each worker does for the wings, whatever the app declares."""
        return ()

    # --- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections. A later use opens them again."""
        client = self._without_client()
        if client is not None:
            client.close()
        super().close()

    async def aclose(self) -> None:
        """`close` for async code: those of this event loop first."""
        client = self._without_client()
        if client is not None:
            await client.aclose()
        await super().aclose()

    # --- inside ------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """What wings do once before a worker is made; the tables are there."""

    def _register(self, job: DeclaredBase[..., ..., Any, Any]) -> None:
        known = self._jobs.get(job.name)
        if known is not None and (known.runs_here or not job.runs_here):
            raise DeclarationError(
                f"the job name {job.name!r} is taken by {known.where}",
                f"{job.where} cannot have the same name",
                "give one of them another name: @app.job(name=...)",
            )
        job.middleware = self._middleware
        self._jobs[job.name] = job

    def _without_client(self) -> JobsClient | None:
        with self._opening:
            client, self._submitter.client = self._submitter.client, None
            return client

    if not TYPE_CHECKING:  # for a type checker such an attribute is missing, as it is

        def __getattr__(self, name):
            raise no_attribute(self, "app", "app", name)
