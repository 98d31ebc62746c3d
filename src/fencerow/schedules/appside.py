"""`app.schedules`: what a program sets, declares and reconciles, beside all that `client.schedules` can do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Unpack

from fencerow.core.answering import answer
from fencerow.core.app.calls import Call
from fencerow.core.app.submitter import Submittable, Submitter
from fencerow.core.client.base import ClientBase
from fencerow.core.config import CoreConfig
from fencerow.core.store import store
from fencerow.core.verb import averb, verb
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.run import Procedure, ask
from fencerow.schedules.declared import Declarations, DeclaredSchedule, Entities
from fencerow.schedules.definitions import RowKind, WantedRow, wanted_row
from fencerow.schedules.errors import InvalidSchedule
from fencerow.schedules.following import Refreshed, refresh
from fencerow.schedules.listing import Listing
from fencerow.schedules.options import ScheduleOptions, check_entity, check_name, planned, work_of
from fencerow.schedules.programs import DeclaredRelease, release_of
from fencerow.schedules.reconciling import Reconciled, reconcile
from fencerow.schedules.settings import ScheduleSettings
from fencerow.schedules.shown import ScheduleRecord
from fencerow.schedules.verbs import ScheduleVerbs, changed, putting

log = logging.getLogger("fencerow.schedules")

ALIVE_MAX = 10_000


def declare(
    declarations: Declarations,
    submitter: Submitter,
    work: Submittable[Any, Any] | Call[Any],
    name: str | None,
    entities: Entities | None,
    given: ScheduleOptions,
) -> None:
    """Note a schedule of this program; see `App.schedule`."""
    stored = work_of(submitter, work.call_later() if isinstance(work, Submittable) else work)
    plan, job = planned(given), stored.template.name
    named = check_name(job if name is None else name)
    plan.definition(work_of(submitter, work) if entities is None else stored)  # it can be stored
    if entities is not None and not callable(entities):
        raise InvalidSchedule(
            f"entities is of type {type(entities).__name__}",
            "a function is expected that returns the list of entities",
            "pass the function itself, or write lambda: [...]",
        )
    declarations.add(DeclaredSchedule(named, work, job, plan, entities, submitter))


@dataclass(frozen=True, slots=True)
class Program:
    """What schedules need to know of the app: who it is, what it declares, and which jobs it knows."""

    submitter: Submitter
    declarations: Declarations
    owner: str
    version: int
    jobs: Collection[str]

    @property
    def wanted(self) -> list[WantedRow]:
        """What it declares."""
        return [each.wanted for each in self.declarations.all.values()]

    @property
    def release(self) -> DeclaredRelease:
        """What it declares as a whole."""
        return release_of(self.owner, self.version, self.wanted)


def program_of(
    submitter: Submitter, declarations: Declarations, config: CoreConfig, jobs: Collection[str]
) -> Program:
    """The program of an app."""
    settings = ScheduleSettings.of(config)
    return Program(
        submitter, declarations, settings.schedules_owner, settings.schedules_version, frozenset(jobs)
    )


@answer
class AppSchedules(ScheduleVerbs):
    """The schedules of one app's database. Each method has an async twin with an `a` in front."""

    def __init__(self, client: ClientBase, program: Program) -> None:
        super().__init__(client)
        self._program = program

    @verb
    def put(
        self,
        name: str,
        work: Submittable[Any, Any] | Call[Any],
        entity: str = "",
        /,
        *,
        take_over: bool = False,
        **given: Unpack[ScheduleOptions],
    ) -> Procedure[ScheduleRecord]:
        """Make a schedule, or change it; returns it as it stands then. May be repeated.

        A change keeps its pause. What is overdue stays due; else it waits for the next fire of its new times. What code
        declares is changed only with `take_over`: from then on it belongs to a person, and code leaves it alone.

        Raises:
            InvalidSchedule, UnknownZone: it says nothing that can be kept. InvalidInput: a name cannot be used.
            ScheduleTaken: code declares it. Nothing was changed.
        """
        wanted = wanted_row(
            check_name(name),
            check_entity(entity) if entity else "",
            RowKind.SINGLE,
            planned(given).definition(work_of(self._program.submitter, work)),
        )
        return (yield from putting(wanted, self._client.actor, take_over))

    aput = averb(put)

    @verb
    def reconcile(self, *, take_back: bool = False) -> Procedure[Reconciled]:
        """Make what this program declares, change what differs, and remove what it declares no longer. Workers do this
        when they start. Rows that people made stay, and so does what they paused.

        If a program with a higher `schedules_version` has done this, nothing is changed; `take_back` makes this one
        count again.

        Raises:
            InvalidSchedule: what was declared cannot be stored any more.
        """
        return (yield from reconciling(self._program, self._client.actor, take_back=take_back))

    areconcile = averb(reconcile)

    def refresh(self, name: str, *, shrinks: bool = False) -> Refreshed:
        """Ask the function of this declared schedule for its entities, now, and keep their rows in step with the list.

        If more than half of them are missing at once, none of these is removed: it is mostly a mistake of the source.
        `shrinks`: it is none. An entity that cannot be used is named, and keeps the row that it has. A coroutine
        function runs in an event loop of its own.

        Raises:
            NoEntities: the list is empty. InvalidEntities: the function raised, or none of its members can be used.
                Nothing was changed.
            UnknownSchedule: this program declares no entities under that name.
        """
        refuse_in_loop()
        declared = self._program.declarations.with_entities(name)
        return self._run(self._refreshing(declared, asyncio.run(declared.listed()), shrinks))

    async def arefresh(self, name: str, *, shrinks: bool = False) -> Refreshed:
        """`refresh` for async code."""
        declared = self._program.declarations.with_entities(name)
        listing = await declared.listed()
        done = await self._arun(self._refreshing(declared, listing, shrinks))
        await asyncio.to_thread(listing.let_go)
        return done

    def _refreshing(
        self, declared: DeclaredSchedule, listing: Listing, shrinks: bool
    ) -> Procedure[Refreshed]:
        return refreshing(declared, listing, self._program, self._client.actor, shrinks=shrinks)


def reconciling(program: Program, actor: str | None, *, take_back: bool = False) -> Procedure[Reconciled]:
    """See `AppSchedules.reconcile`."""
    alive = yield from ask(store.list_workers(state="alive", limit=ALIVE_MAX))
    running = {name for worker in alive for name in worker.names or ()}
    done = yield from ask(
        reconcile(
            program.wanted,
            owner=program.owner,
            version=program.version,
            own=program.jobs,
            running=running,
            actor=actor,
            take_back=take_back,
        )
    )
    if done.made or done.changed:
        yield changed()
    return done


def refreshing(
    declared: DeclaredSchedule,
    listing: Listing,
    program: Program,
    actor: str | None,
    *,
    shrinks: bool = False,
) -> Procedure[Refreshed]:
    """Keep the rows of the entities in step with this list."""
    done = yield from ask(
        refresh(declared.name, declared.digest, listing, owner=program.owner, actor=actor, shrinks=shrinks)
    )
    if done.made or done.changed:
        yield changed()
    return done
