"""Which job or worker a person means who typed the beginning of an id: the only one whose id begins so.

Only a beginning is looked for. The index of the ids finds it as a range; the end of an id would take a look at every
row, or one more index that every job pays for.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.db.run import Procedure, Steps, ask, execute, first_column, operation
from fencerow.core.errors import AmbiguousId, JobNotFound
from fencerow.core.model.ids import IdRange
from fencerow.core.model.state import WorkerState

CANDIDATES_SHOWN = 5


@operation(alone=True, repeatable=True, writes="")
def jobs_between(first: str, last: str, *, limit: int) -> Steps[list[str]]:
    """The ids of jobs in this range, both ends included, live and finished together, in order."""
    return first_column((yield from execute("jobs_between", first=first, last=last, limit=limit)))


@operation(alone=True, repeatable=True, writes="workers")
def workers_between(first: str, last: str, *, state: str | None = None, limit: int) -> Steps[list[str]]:
    """The ids of registrations in this range, both ends included, in order: all, or those in this state."""
    rows = yield from execute("workers_between", first=first, last=last, state=state, limit=limit)
    return first_column(rows)


def job_meant(meant: IdRange) -> Procedure[str]:
    """The id of the job that is meant. A whole id is not looked up: what is done with the job tells if it is gone.

    Raises:
        AmbiguousId: the ids of several jobs begin so.
        JobNotFound: no job's id begins so.
    """
    if meant.is_whole:
        return meant.first
    found = yield from ask(jobs_between(meant.first, meant.last, limit=CANDIDATES_SHOWN + 1))
    if not found:
        raise JobNotFound(
            f"no job has an id that begins with {meant.typed}",
            "neither live nor finished; only the beginning of an id is looked for, never its end",
            "check it, or copy the whole id: `fencerow jobs list` shows it",
        )
    return only_one(found, meant, "jobs")


def jobs_meant(meant: Sequence[IdRange]) -> Procedure[list[str]]:
    """The ids of all these jobs, each once. One that is not clear stops all, before anything is done.

    Raises:
        AmbiguousId, JobNotFound: as `job_meant`.
    """
    found: dict[str, None] = {}
    for each in meant:
        found[(yield from job_meant(each))] = None
    return list(found)


def worker_meant(meant: IdRange) -> Procedure[str | None]:
    """The id of the registration that is meant; None if no id begins so.

    One that lives is meant rather than one that has ended: the ids of a process and of those before it may begin alike.

    Raises:
        AmbiguousId: several living workers' ids begin so; or none lives, and several have ended.
    """
    if meant.is_whole:
        return meant.first
    for state in (WorkerState.ALIVE.value, None):
        look = workers_between(meant.first, meant.last, state=state, limit=CANDIDATES_SHOWN + 1)
        found = yield from ask(look)
        if found:
            return only_one(found, meant, "workers")
    return None


def only_one(found: Sequence[str], meant: IdRange, what: str) -> str:
    """The one that was found.

    Raises:
        AmbiguousId: there are more.
    """
    if len(found) == 1:
        return found[0]
    shown = tuple(found[:CANDIDATES_SHOWN])
    more = len(found) > CANDIDATES_SHOWN
    raise AmbiguousId(
        f"{'more than ' if more else ''}{len(shown)} {what} have an id that begins with {meant.typed}",
        f"they are {', '.join(shown)}" + (" and more" if more else ""),
        "give more of its digits: ids that were made at about the same time begin alike",
        candidates=shown,
    )
