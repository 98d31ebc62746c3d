"""Ids that are there already: each stands for one job, so whoever submits under one again must mean the same work."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import NewJob
from fencerow.core.model.packed import fingerprint
from fencerow.db.left_out import refuse_left_out
from fencerow.db.run import Row, Steps, execute


def refuse_other_work(jobs: Sequence[NewJob], *, keyed: bool = False) -> Steps[None]:
    """Raise when a job is known as another one; `keyed`: also when it is known under another key, or under none.

    Part of the transaction that submits, so that nothing is stored.

    Raises:
        InvalidInput: an id belongs to other work, or to another key.
        RowRefused: one is of no job, though it was to be inserted.
    """
    if not jobs:
        return
    rows = yield from execute("read_known", ids=[job.id for job in jobs])
    known = {str(row[0]): row for row in rows}
    for job in jobs:
        row = known.get(job.id)
        if row is not None:
            _refuse_other(job, row, keyed)
    yield from refuse_absent([job.id for job in jobs if job.id not in known])


def refuse_absent(ids: Sequence[str]) -> Steps[None]:
    """Raise when one of these, which an insert did not store as if they were there, is the id of no job.

    Raises:
        RowRefused: a trigger left its row out. Or somebody has removed the job in this very moment.
    """
    if ids:
        refuse_left_out((yield from execute("read_absent", ids=list(ids))))


def _refuse_other(job: NewJob, row: Row, keyed: bool) -> None:
    _, name, args, scope, key, args_was = row
    template = job.template
    # Whoever changed the arguments of the job left what identifies those that it was submitted with.
    repeats = args_was is not None and args_was == fingerprint(template.name, job.args.encode())
    if not repeats and not is_same_work((template.name, job.args), (str(name), str(args))):
        raise InvalidInput(
            f"the id {job.id} belongs to another job already",
            f"that job is a {str(name)!r} with other arguments or another name",
            "repeat a submit with the same arguments, or leave the id out",
        )
    if keyed and (scope, key) != (template.scope, template.key):
        raise InvalidInput(
            f"the id {job.id} belongs to a job that was submitted "
            + ("without a key" if key is None else f"under the key {key!r} of scope {scope!r}"),
            f"this submit names the key {template.key!r} of scope {template.scope!r}: one id has one key",
            "repeat a submit with the same key, or leave the id out",
        )


def is_same_work(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two jobs, each given by its name and the text of its arguments, are the same work."""
    if one == other or fingerprint(one[0], one[1].encode()) == fingerprint(other[0], other[1].encode()):
        return True
    return one[0] == other[0] and msgspec.json.decode(one[1]) == msgspec.json.decode(other[1])
