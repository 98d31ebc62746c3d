"""The columns of `fencerow jobs list`: which there are, which are shown by themselves, which somebody asks for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from fencerow.command.layout import Column
from fencerow.command.times import Times
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State
from fencerow.db.text import percent
from fencerow.unique.keys import UniqueKey

COLUMNS = (
    Column("id", short=True),
    Column("state"),
    Column("when"),
    Column("job", least=8),
    Column("queue", least=8, rank=2),
    Column("note", least=10, rank=1),
    Column("attempt", rank=3),
    Column("submitted", rank=4),
)


def _when(job: JobRecord, at: Times) -> str | None:
    """When it ended, was claimed, or is due, as its state is."""
    return at.when(job.ended_at_us or (job.claimed_at_us if job.state is State.RUNNING else job.run_at_us))


def _note(job: JobRecord) -> str:
    if isinstance(job.error, dict) and job.state is State.FAILED:
        return str(job.error.get("message") or job.error.get("type") or "")
    if job.cancel_requested_at_us and not job.is_final:
        return "cancel asked"
    told = "" if job.is_final else _told_of_attempts(job)
    if told and job.state is not State.RUNNING:  # its progress is that of the attempt which failed
        return told
    if job.progress is not None and not job.is_final:
        return f"{percent(job.progress)} {job.progress_note or ''}".strip()
    if told:
        return told
    return ", ".join(job.tags or [])


def _told_of_attempts(job: JobRecord) -> str:
    """That a job which has not ended has failed before, or lost its process: nothing else tells the eye."""
    told = [f"failed {job.failures} of {job.attempts_max}"] if job.failures else []
    told += [f"crashed {job.crashes} of {job.crashes_max}"] if job.crashes else []
    return ", ".join(told)


def _error(job: JobRecord) -> str | None:
    if not isinstance(job.error, dict):
        return None
    return ": ".join(str(job.error[name]) for name in ("type", "message") if job.error.get(name))


CELLS: Mapping[str, Callable[[JobRecord, Times], object]] = {
    "id": lambda job, _: job.id,
    "state": lambda job, _: job.state.value,
    "when": _when,
    "job": lambda job, _: job.name,
    "queue": lambda job, _: job.queue,
    "note": lambda job, _: _note(job),
    "attempt": lambda job, _: job.attempt,
    "submitted": lambda job, at: at.when(job.submitted_at_us),
    "priority": lambda job, _: job.priority,
    "failures": lambda job, _: f"{job.failures} of {job.attempts_max}",
    "due": lambda job, at: at.when(job.run_at_us),
    "claimed": lambda job, at: at.when(job.claimed_at_us),
    "ended": lambda job, at: at.when(job.ended_at_us),
    "expires": lambda job, at: at.when(job.expires_at_us),
    "holder": lambda job, _: job.holder,
    "key": lambda job, _: job.key,
    "scope": lambda job, _: job.scope,
    "exclusive": lambda job, _: job.exclusive,
    "gate": lambda job, _: job.gate,
    "affinity": lambda job, _: job.affinity,
    "tags": lambda job, _: ", ".join(job.tags or []),
    "by": lambda job, _: job.submitted_by,
    "progress": lambda job, _: None if job.progress is None else percent(job.progress),
    "error": lambda job, _: _error(job),
    "bytes": lambda job, _: job.args_bytes,
}
UNIQUE = "unique"  # stands beside the job, so that it is asked for only where it is shown
NAMES = (*CELLS, UNIQUE)


def unique_cell(keys: Sequence[UniqueKey]) -> str:
    """The keys under which submits find a job."""
    return ", ".join(f"{each.scope}: {each.key}" for each in keys)


def chosen_columns(text: str) -> Sequence[Column]:
    """The columns that `--columns` names, in its order: all are shown, and ids are never cut.

    Raises:
        InvalidInput: there is no such column, or one stands twice.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in NAMES:
            close = difflib.get_close_matches(name, NAMES, n=2, cutoff=0.5)
            raise InvalidInput(
                f"there is no column {ascii(name)[:60]}",
                f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(NAMES)}",
                "write for example --columns id,job,queue,priority",
            )
    if len(set(names)) < len(names):
        raise InvalidInput(f"--columns {ascii(text)[1:-1][:100]}", "a column stands twice", "name each once")
    known = {column.name: column for column in COLUMNS}
    return [_wide(known.get(name) or Column(name, least=8)) for name in names]


def row_of(
    job: JobRecord, at: Times, shown: Sequence[Column], unique: Sequence[UniqueKey] = ()
) -> list[object]:
    """A job as a row of these columns. `unique`: the keys under which submits find it, where they are shown."""
    return [unique_cell(unique) if column.name == UNIQUE else CELLS[column.name](job, at) for column in shown]


def _wide(column: Column) -> Column:
    """Whoever names a column wants to see it: nothing is left out."""
    least = None if column.name in ("id", "holder") else column.least
    return Column(column.name, least=least)
