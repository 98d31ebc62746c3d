"""The lines of handovers, as far as a submit goes: a job whose end is to be handed over takes its place there.

What ends a job writes its end into the line in the same statement, and a revive takes it out again: ends.sql.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.db.run import Row, Steps, execute, first_column
from fencerow.handovers.terms import WING


def lining_up(jobs: Sequence[NewJob]) -> Steps[None]:
    """Let these new jobs line up in their order, each as its term says.

    In the transaction of their insert, after it; part of other operations.
    """
    yield from execute("line_up", lined=_document(_lined(jobs)))


def lining_up_again(jobs: Sequence[NewJob]) -> Steps[None]:
    """The same for ids that may stand in a line already: of jobs that a unique one has replaced, or that retention has
    removed since. They keep their places, take what is said now, and have not ended.

    Each statement writes only what its own kind needs: a role that submits keys needs no right to write ends.
    """
    left = _lined(jobs)
    left = _without(left, (yield from execute("line_up_again", lined=_document(left))))
    if left:
        left = _without(left, (yield from execute("stay_in_line", lined=_document(left))))
    if left:
        left = _without(left, (yield from execute("begin_again_in_line", lined=_document(left))))
    if left:  # these lines were forgotten meanwhile
        yield from execute("line_up_again", lined=_document(left))


def _without(lined: list[dict[str, Any]], placed: Sequence[Row]) -> list[dict[str, Any]]:
    ids = set(first_column(placed))
    return [each for each in lined if each["id"] not in ids]


def _lined(jobs: Sequence[NewJob]) -> list[dict[str, Any]]:
    return [{"id": job.id, "name": job.template.name, **(job.terms or {})[WING]} for job in jobs]


def _document(lined: list[dict[str, Any]]) -> str:
    return msgspec.json.encode(lined).decode()
