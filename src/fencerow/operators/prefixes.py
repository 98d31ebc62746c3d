"""Which job or worker a person means who typed a part of an id: the only one whose id begins or ends so.

The index of the ids finds a beginning as a range, however many jobs there are. No index has the ends, and one that has
would cost each job a write. So an end is looked for among the newest jobs, `LOOKED_AT` of them. If there are more, an
older one may have the same end: then the end must have eight digits, so that this is not to be expected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.command.ids import END_DIGITS
from fencerow.core.errors import InvalidInput, JobNotFound
from fencerow.core.model.ids import DIGITS, hyphened
from fencerow.core.model.state import WorkerState
from fencerow.db.run import Procedure, Steps, as_int, ask, execute, first_column, operation
from fencerow.db.text import shown
from fencerow.operators.errors import AmbiguousId

PREFIX = re.compile(r"[0-9a-f-]+", re.ASCII)
PREFIX_DIGITS_MIN = 4
END_DIGITS_MIN = 6  # 16 million ends: of ten thousand jobs hardly two have the same
CANDIDATES_SHOWN = 5
LOOKED_AT = 10_000


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids that begin with what a person typed: from `first` to `last`, both among them.

    `end`: the digits with which an id may end instead; None where it is too short, or whole, or has hyphens.
    """

    typed: str
    first: str
    last: str
    end: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether a whole id was typed, so that only one can be meant."""
        return self.first == self.last


def parse_prefix(text: object) -> IdRange:
    """The ids that begin so: with at least four hexadecimal digits, hyphens at their places or none at all.

    Ids are ordered by their digits, so those with one beginning stand side by side: an index finds them as a range.
    Six digits or more without a hyphen may be the end of an id as well.

    Raises:
        InvalidInput: no id begins so, or it is too short.
    """
    lowered = text.strip().lower() if isinstance(text, str) else ""
    digits = lowered.replace("-", "")
    first, last = (hyphened(digits.ljust(DIGITS, end)) for end in "0f")
    is_prefix = PREFIX.fullmatch(lowered) and (lowered == digits or first.startswith(lowered))
    if not is_prefix or not PREFIX_DIGITS_MIN <= len(digits) <= DIGITS:
        raise InvalidInput(
            f"{shown(text)} is not an id",
            "an id is a UUID such as 0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e, "
            f"or its beginning, of at least {PREFIX_DIGITS_MIN} digits, or its end, of at least {END_DIGITS_MIN}",
            "copy the id from `fencerow jobs list`, or what submit returned",
        )
    may_end = lowered == digits and END_DIGITS_MIN <= len(digits) < DIGITS
    return IdRange(lowered, first, last, digits if may_end else None)


@dataclass(frozen=True, slots=True)
class Ending:
    """The ids that end so, the newest first. `not_all`: there may be older jobs than those that were looked at."""

    ids: list[str]
    not_all: bool


@operation(alone=True, repeatable=True, writes="")
def jobs_between(first: str, last: str, *, limit: int) -> Steps[list[str]]:
    """The ids of jobs in this range, both ends included, live and finished together, in order."""
    return first_column((yield from execute("jobs_between", first=first, last=last, limit=limit)))


@operation(alone=True, repeatable=True, writes="")
def jobs_ending(end: str, *, look: int, limit: int) -> Steps[Ending]:
    """Those of the newest `look` jobs, live and finished together, whose ids end so. It reads so many entries of an
    index, whatever it finds."""
    rows = yield from execute("jobs_ending", digits=end, look=look, limit=limit)
    return Ending([str(each) for _, each in rows if each is not None], not_all=as_int(rows[0][0]) >= look)


@operation(alone=True, repeatable=True, writes="", reads="workers")
def workers_between(first: str, last: str, *, state: str | None = None, limit: int) -> Steps[list[str]]:
    """The ids of registrations in this range, both ends included, in order: all, or those in this state."""
    rows = yield from execute("workers_between", first=first, last=last, state=state, limit=limit)
    return first_column(rows)


def job_meant(meant: IdRange) -> Procedure[str]:
    """The id of the job that is meant. A whole id is not looked up: what is done with the job tells if it is gone.

    Raises:
        AmbiguousId: the ids of several jobs begin or end so, or older ones may.
        JobNotFound: no job's id begins so, and none of the newest ends so.
    """
    if meant.is_whole:
        return meant.first
    found = yield from ask(jobs_between(meant.first, meant.last, limit=CANDIDATES_SHOWN + 1))
    if meant.end is None:
        return _the_one(found, meant, "neither live nor finished")
    ending = yield from ask(jobs_ending(meant.end, look=LOOKED_AT, limit=CANDIDATES_SHOWN + 1))
    among = f"neither live nor finished; ends are looked for among the newest {LOOKED_AT:,}"
    job_id = _the_one(
        [*found, *(each for each in ending.ids if each not in found)],
        meant,
        among if ending.not_all else "neither live nor finished",
    )
    if ending.not_all and not found and len(meant.end) < END_DIGITS:
        raise AmbiguousId(
            f"of the newest {LOOKED_AT:,} jobs only {job_id} ends with {meant.typed}",
            "there are older ones, which were not looked at: with so few digits one of them may end so too",
            f"give the last {END_DIGITS} digits, or the whole id",
            candidates=(job_id,),
        )
    return job_id


def _the_one(found: Sequence[str], meant: IdRange, why: str) -> str:
    if not found:
        raise JobNotFound(
            f"no job has an id that begins{'' if meant.end is None else ' or ends'} with {meant.typed}",
            why,
            "check it, or copy the whole id: `fencerow jobs list --full` shows it",
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
    begin = "begin" if meant.end is None or what == "workers" else "begin or end"
    raise AmbiguousId(
        f"{'more than ' if more else ''}{len(shown)} {what} have ids that {begin} with {meant.typed}",
        f"they are {', '.join(shown)}" + (" and more" if more else ""),
        "give more of its digits: ids that were made at about the same time begin alike",
        candidates=shown,
    )
