"""A wing: one feature with all that is its own, told to the core by one record. The core knows none of them.

What a record names is made when it is asked for, so the record itself imports next to nothing: a program that never
uses a wing never loads it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fencerow.core.composed import compose
from fencerow.core.model.habits import understand
from fencerow.core.offered import Offer, offer
from fencerow.core.schema import rooms
from fencerow.core.store.gating import gate_by
from fencerow.core.store.terms import settle_by, when_stored
from fencerow.core.worker.brought import Brought, bring
from fencerow.core.worker.job_type import give

if TYPE_CHECKING:
    import click

    from fencerow.core.chore import Chore, Site
    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.finding import Finding
    from fencerow.core.model.habits import OthersWords
    from fencerow.core.model.person import Person
    from fencerow.core.offered import Options
    from fencerow.core.store.gating import Gating
    from fencerow.core.store.terms import Settle, WhenStored
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.worker.brought import BoundClaim, Hold, MakeTogether, Processes
    from fencerow.core.worker.context import Job
    from fencerow.db.engine import Engine
    from fencerow.db.run import Operation, Param, Rows

T = TypeVar("T")

Purge = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Check:
    """One examination of the doctor: it says what it found, and changes nothing."""

    name: str
    examine: Callable[[Engine, CoreConfig], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class ChangeByHand:
    """One change that people make by hand, by the statement that makes it.

    `kind`: of what, such as a queue; `verb`: what became of it, in the past. `target`: the parameter that names it;
    `targets`: who names it otherwise; by default the first column of the rows has what was changed. A statement without
    rows has changed nothing, unless it `always` does. `shown`: parameters that may be told, so none with a secret.
    """

    statement: str
    kind: str
    verb: str
    target: str | None = None
    targets: Callable[[Mapping[str, Param], Rows], Sequence[str]] | None = None
    always: bool = False
    shown: tuple[str, ...] = ("reason",)


@dataclass(frozen=True, slots=True)
class SubmitGrant:
    """A right that a role needs which submits jobs and owns no table: `what`, such as `INSERT (job_id) ON receipts`.

    `keyed`: only to submit under keys, and under ids of its own, that may be stored already.
    """

    what: str
    keyed: bool = False


def _none(*_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class Wing:
    """What a feature brings.

    `queries`: the packages in which its named queries lie, and what it says at the points of the core's
    (core/store/points.py), each with a folder for each dialect; a folder `schema` in one holds the numbered migrations
    that make its tables, and `shape.json` beside it what they make.
    `options`: those of jobs and of submits that it offers, by their names, and `offers` what they mean; what a submit
    says with them becomes its term of the job. `settles`: what it decides, under its locks, before jobs with its term
    are stored: that one is there already. `stored`: what it writes where jobs are stored that have its term; `granted`:
    what a role that only submits must be granted for that on PostgreSQL.
    `chores`: what each worker does for it beside its jobs. `together`, `processes`: how a worker runs several attempts
    in one call, and some in other processes. `hold`: what keeps a claimed job from starting for a while.
    `bound_claim`: how it claims from a queue that has a limit. `gating`: who knows the places where jobs wait.
    `queues_soon`: whether its chores will queue jobs at once; a worker that ends once nothing is left waits for them.
    `purges`: what retention removes for it, in each round of every worker. `used`: the query that has a row once its
    tables have some: until then nothing is purged, and who purges is not loaded. `checks`: what the doctor looks at.
    `staying`: its tables whose rows mean nothing in another database, and why; the rows of all others go along with
    `fencerow move`. `declared`: those in which workers write at their start: what comes replaces rows of the same key.
    `came`: its queries to run once rows of another database have come.
    `changes`: what people change in it by hand. `witness`: who stands before the engine of a person and sees that.
    `commands`: what the command `fencerow` can do with it. `settings`: what it can be told; `fencerow.config` makes it
    a part of `Config`.
    """

    name: str
    queries: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    offers: Callable[[], Options] | None = None
    settles: Settle | None = None
    stored: WhenStored | None = None
    granted: tuple[SubmitGrant, ...] = ()
    chores: Callable[[Site], Sequence[Chore]] | None = None
    together: MakeTogether | None = None
    processes: Processes | None = None
    hold: Hold | None = None
    bound_claim: BoundClaim | None = None
    gating: Callable[[], Gating] | None = None
    queues_soon: Callable[[], Operation[bool]] | None = None
    purges: Callable[[Engine, CoreConfig, Telemetry], Sequence[Purge]] = _none
    used: str | None = None
    checks: Callable[[], Sequence[Check]] = _none
    staying: Mapping[str, str] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    came: tuple[str, ...] = ()
    changes: tuple[ChangeByHand, ...] = ()
    witness: Callable[[Engine, Person], Engine] | None = None
    commands: Callable[[], Sequence[click.Command]] = _none
    settings: Callable[[], type[Settings]] | None = None


_wings: tuple[Wing, ...] = ()


def build(
    wings: Sequence[Wing],
    config: Callable[[], type[CoreConfig]],
    job: Callable[[], type[Job]],
    words: Callable[[], OthersWords],
) -> None:
    """Said once, by the package itself when it is imported: these are all there are, this has their settings, this
    the verbs that they give a running job, and these are what other systems call it all."""
    global _wings
    _wings = tuple(wings)
    compose(config)
    understand(words)
    give(job)
    bring(
        Brought(
            together=_one(wing.together for wing in wings),
            processes=_one(wing.processes for wing in wings),
            chores=tuple(wing.chores for wing in wings if wing.chores is not None),
            hold=_one(wing.hold for wing in wings),
            bound_claim=_one(wing.bound_claim for wing in wings),
            queues_soon=tuple(wing.queues_soon for wing in wings if wing.queues_soon is not None),
        )
    )
    for wing in wings:
        rooms.add_packages(wing.queries)
        if wing.offers is not None:
            offer(wing.name, Offer(frozenset(wing.options), wing.offers))
        if wing.settles is not None:
            settle_by(wing.name, wing.settles)
        if wing.stored is not None:
            when_stored(wing.name, wing.stored)
        if wing.gating is not None:
            gate_by(wing.gating)


def _one(brought: Iterable[T | None]) -> T | None:
    """What one wing brings, if any does."""
    return next((each for each in brought if each is not None), None)


def wings() -> tuple[Wing, ...]:
    """All wings, those below first."""
    return _wings


def witnessed(engine: Engine, person: Person) -> Engine:
    """The engine by which a person changes something: whoever watches over that stands before it."""
    for wing in _wings:
        if wing.witness is not None:
            engine = wing.witness(engine, person)
    return engine
