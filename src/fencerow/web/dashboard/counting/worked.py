"""Jobs worked over HTTP, for pages: a bounded look at attempts."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.db.run import Row, Steps, as_int, execute, operation, text_or_none

LOOK = 500  # of the newest attempts
NAMES_MAX = 100


@dataclass(frozen=True, slots=True)
class WaitingAttempt:
    """An attempt whose endpoint answers later, and must say something by `look_at_us`. No name: its job has ended."""

    job_id: str
    attempt: int
    name: str | None
    queue: str | None
    sent_at_us: int
    look_at_us: int
    give_up_at_us: int
    percent: float | None
    note: str | None


@dataclass(frozen=True, slots=True)
class WorkedLately:
    """What became of the newest attempts of one kind of job. `at_once`: by the reply itself, whatever that was."""

    name: str
    sent: int
    waiting: int
    late: int
    at_once: int
    succeeded: int
    failed: int
    silent: int
    sent_at_us: int


@operation(alone=True, repeatable=True, writes="")
def worked_waits(after: tuple[int, str], *, limit: int) -> Steps[tuple[list[WaitingAttempt], int]]:
    """A page of attempts that wait for an answer, the latest ones first, behind a place; and the database's clock."""
    rows = yield from execute("worked_waits", after_us=after[0], after_id=after[1], limit=limit)
    *found, last = rows
    return [_waiting(row) for row in found], as_int(last[5])


@operation(alone=True, repeatable=True, writes="")
def worked_lately() -> Steps[list[WorkedLately]]:
    """What became of the newest `LOOK` attempts, by the name of their job."""
    rows = yield from execute("worked_lately", look=LOOK, limit=NAMES_MAX)
    return [WorkedLately(str(row[0]), *(as_int(each) for each in row[1:])) for row in rows]


def _waiting(row: Row) -> WaitingAttempt:
    return WaitingAttempt(
        str(row[0]),
        as_int(row[1]),
        text_or_none(row[2]),
        text_or_none(row[3]),
        as_int(row[4]),
        as_int(row[5]),
        as_int(row[6]),
        None if row[7] is None else float(str(row[7])),
        text_or_none(row[8]),
    )
