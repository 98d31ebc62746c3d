"""Worker registrations: one row, one lease, for all the jobs a worker process holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fencerow.core.errors import OlderWorkers
from fencerow.core.model.wanted import Wanted
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store.decoding import read_or, worker_of
from fencerow.db.run import Steps, as_int, execute, operation, text_or_none

SHOWN = 3


class Holding(msgspec.Struct, frozen=True):
    """A job that the database says a worker runs, and whether its cancel was asked and by whom."""

    id: str
    attempt: int
    cancel_requested: bool
    cancel_requested_by: str | None


class Unaware(msgspec.Struct, frozen=True):
    """A living worker that does not know a rule."""

    name: str
    version: str


class Renewed(msgspec.Struct, frozen=True):
    """The lease was extended; and what is wanted of the worker, None while nobody asked for anything that can be read.

    `at_us` is the database's instant from which the lease counts, in microseconds.
    """

    version: int
    wanted: Wanted | None
    at_us: int


@operation(alone=True, writes="workers")
def register(
    *,
    holder: str,
    name: str,
    host: str,
    pid: int,
    info: str,
    lease_s: float,
    stated: str | None = None,
    former: str | None = None,
) -> Steps[bool]:
    """Make the row of a worker under a fresh id; false when the id was used before (take another).

    `former` is the registration of the same process that was declared dead: what was wanted of it goes on.
    """
    rows = yield from execute(
        "register",
        holder=holder,
        name=name,
        host=host,
        pid=pid,
        info=info,
        lease_s=lease_s,
        stated=stated,
        former=former,
    )
    return bool(rows)


@operation(alone=True, repeatable=True, writes="workers")
def renew(*, holder: str, stated: str | None = None) -> Steps[Renewed | None]:
    """Extend the lease and learn what is wanted; None means: declared dead, it holds nothing any more.

    `stated` is what the worker does now, as JSON; without it the last word stays.
    """
    rows = yield from execute("renew", holder=holder, stated=stated)
    if not rows:
        return None
    text = text_or_none(rows[0][1])
    wanted = None if text is None else read_or(None, Wanted, text)
    return Renewed(as_int(rows[0][0]), wanted, as_int(rows[0][2]))


@operation(alone=True, repeatable=True, writes="workers")
def retire(*, holder: str) -> Steps[bool]:
    """End the registration after handing back; false when it had ended already."""
    return bool((yield from execute("retire", holder=holder)))


@operation(alone=True, repeatable=True, writes="", reads="workers")
def last_renewal(*, holder: str) -> Steps[int | None]:
    """The database's instant of the last renewal it has, in microseconds; None when it has no such worker."""
    rows = yield from execute("last_renewal", holder=holder)
    return as_int(rows[0][0]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def server_identity() -> Steps[str | None]:
    """Which server this is, and its timeline, which a promotion changes; None where there is no such thing."""
    rows = yield from execute("server_identity")
    return text_or_none(rows[0][0]) if rows else None


@operation(alone=True, repeatable=True, writes="workers")
def describe_worker(*, holder: str, info: str) -> Steps[bool]:
    """Replace what a worker's row tells operators; false when the registration has ended."""
    return bool((yield from execute("describe_worker", holder=holder, info=info)))


@operation(alone=True, repeatable=True, writes="")
def holdings(*, holder: str) -> Steps[list[Holding]]:
    """What the database says this worker runs."""
    rows = yield from execute("holdings", holder=holder)
    return [Holding(str(row[0]), as_int(row[1]), bool(row[2]), text_or_none(row[3])) for row in rows]


@operation(alone=True, repeatable=True, writes="", reads="workers")
def list_workers(
    *, state: str | None = None, holder: str | None = None, limit: int = 100
) -> Steps[list[WorkerRecord]]:
    """Worker registrations, the newest first."""
    rows = yield from execute("list_workers", state=state, holder=holder, limit=limit)
    return [worker_of(str(row[0])) for row in rows]


@operation(alone=True, repeatable=True, writes="", reads="workers")
def unaware_workers(rule: str) -> Steps[list[Unaware]]:
    """The living workers that do not say that they know this rule, at most 100."""
    rows = yield from execute("unaware_workers", rule=rule)
    return [Unaware(str(row[0]), str(row[1] or "unknown")) for row in rows]


def refuse_older(rules: Iterable[str]) -> Steps[None]:
    """Look whether all living workers know these rules. Part of other operations.

    Raises:
        OlderWorkers: one of them does not know one of the rules.
    """
    for rule in sorted(rules):
        unaware = yield from unaware_workers(rule).steps()
        if unaware:
            raise older_workers(rule, unaware)


def older_workers(rule: str, unaware: Sequence[Unaware]) -> OlderWorkers:
    """The error for what needs a rule that these workers do not know."""
    shown = ", ".join(f"{each.name} ({each.version})" for each in unaware[:SHOWN])
    more = f" and {len(unaware) - SHOWN} more" if len(unaware) > SHOWN else ""
    one = len(unaware) == 1
    who = "a living worker does not" if one else f"{len(unaware)} living workers do not"
    return OlderWorkers(
        f"{who} know the rule {rule!r} that this job needs",
        f"{shown}{more} {'runs' if one else 'run'} an older release and would not keep it",
        "deploy this release to all workers first, or submit without the option",
    )
