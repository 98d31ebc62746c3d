"""Taking back what the dead hold, and ending what is past its time. Safe in every worker at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.model.state import FINAL, State
from fencerow.core.store.attempts import MovedJob, archive
from fencerow.db.run import Rows, Steps, as_int, execute, first_column, operation, text_or_none

DEATHS_PER_CRASH = 5


class Reclaimed(msgspec.Struct, frozen=True):
    """A running job that was taken from its holder: what it became, and where it stands now."""

    id: str
    state: State
    queue: str
    priority: int
    run_at_us: int
    attempt: int
    holder: str | None = None
    begun: bool = True


class LeaseAhead(msgspec.Struct, frozen=True):
    """A living worker whose lease was written before the database's clock went back; its last renewal by that clock."""

    holder: str
    renewed_us: int
    lease_s: float


@operation(alone=True, writes="workers")
def die(*, judge: str, until_us: int) -> Steps[list[str]]:
    """Declare workers dead whose lease has run out; returns their ids. Their jobs go back by `reclaim`.

    `judge` is the worker that says so. It must be alive and within its lease itself, and the database's
    clock must not have passed `until_us`, up to which the judge may rely on what it knows. Otherwise nobody
    is: after an outage everybody is late.
    """
    return first_column((yield from execute("die", judge=judge, until_us=until_us)))


@operation(alone=True, repeatable=True, writes="", reads="workers")
def leases_ahead() -> Steps[list[LeaseAhead]]:
    """Living workers whose lease lies further ahead than a renewal of now would put it."""
    rows = yield from execute("leases_ahead")
    return [LeaseAhead(str(row[0]), as_int(row[1]), float(str(row[2]))) for row in rows]


@operation(alone=True, writes="workers")
def die_ahead(silent: Sequence[LeaseAhead], *, judge: str, until_us: int) -> Steps[list[str]]:
    """Declare those of `leases_ahead` dead that the judge has seen unrenewed for a whole lease; returns their ids.

    One that has renewed since is spared: the statement asks for the renewal that was seen. `judge` and `until_us`
    as in `die`.
    """
    named = msgspec.json.encode([(each.holder, each.renewed_us) for each in silent]).decode()
    return first_column((yield from execute("die_ahead", silent=named, judge=judge, until_us=until_us)))


@operation(alone=True, repeatable=True, writes="", reads="both")
def lost_holders() -> Steps[list[str]]:
    """Holders of running jobs that have no row at all: after a restore, a failover, a lost file of workers."""
    return first_column((yield from execute("lost_holders")))


@operation(alone=True, repeatable=True, writes="workers")
def adopt(holders: Sequence[str]) -> Steps[list[str]]:
    """Give these holders a dead row, so that `reclaim` can name them; those that have a row keep it."""
    return first_column((yield from execute("adopt", holders=list(holders))))


@operation(alone=True, repeatable=True, writes="", reads="both")
def dead_holders() -> Steps[list[str]]:
    """Dead or retired workers that still hold running jobs, at most 100."""
    return first_column((yield from execute("dead_holders")))


@operation()
def reclaim(
    dead: Sequence[str], *, limit: int, actor: str | None
) -> Steps[tuple[list[Reclaimed], list[MovedJob]]]:
    """Take running jobs from these dead holders, at most `limit`; returns what became of each, and the finished.

    A death counts a crash against a job that ran alone there. Of the others nobody knows which one it was; a job
    that saw `DEATHS_PER_CRASH` times its crash budget of workers die in a row, without an attempt that came to an
    end, fails all the same.
    """
    rows = yield from execute(
        "reclaim", dead=list(dead), limit=limit, actor=actor, deaths_per_crash=DEATHS_PER_CRASH
    )
    return (yield from settle(rows))


@operation()
def time_out(
    *, limit: int, delay_s: float, actor: str | None
) -> Steps[tuple[list[Reclaimed], list[MovedJob]]]:
    """End what living workers call overdue themselves (`Stated.overdue`), at most `limit` jobs.

    What had begun is a failure, retried after `delay_s`; what had not goes back uncounted.
    """
    rows = yield from execute("time_out", limit=limit, delay_s=delay_s, actor=actor)
    return (yield from settle(rows))


def settle(rows: Rows) -> Steps[tuple[list[Reclaimed], list[MovedJob]]]:
    """What became of each, with the finals moved. Part of other operations."""
    found = [
        Reclaimed(
            str(row[0]),
            State(str(row[1])),
            str(row[2]),
            as_int(row[3]),
            as_int(row[4]),
            as_int(row[5]),
            text_or_none(row[6]) if len(row) > 6 else None,
            bool(row[7]) if len(row) > 7 else True,
        )
        for row in rows
    ]
    moved = yield from archive(job.id for job in found if job.state in FINAL)
    return found, moved


class Crash(msgspec.Struct, frozen=True):
    """An attempt whose child process died: `reason` says how, the job is due again `delay_s` seconds from now."""

    id: str
    attempt: int
    delay_s: float
    reason: str


@operation(repeatable=False)
def crash(outcomes: Sequence[Crash], *, holder: str) -> Steps[tuple[list[Reclaimed], list[MovedJob]]]:
    """Count a crash of each; returns what became of them, and the finished. The others wait as suspects."""
    document = msgspec.json.encode(outcomes).decode()
    rows = yield from execute("crash", outcomes=document, holder=holder)
    return (yield from settle(rows))


@operation(alone=True, repeatable=True)
def note_alone(job_id: str, *, holder: str, attempt: int) -> Steps[bool]:
    """Note that the attempt is about to run with its worker for itself; false means that it lost its job."""
    return bool((yield from execute("note_alone", id=job_id, holder=holder, attempt=attempt)))
