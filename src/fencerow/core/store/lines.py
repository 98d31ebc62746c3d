"""The lines of handovers, as far as a submit goes: a job whose end is to be handed over takes its place there.

All else about handovers is in their wing. What ends a job writes its end into the line in the same statement
(finish.sql), and a revive takes it out again (moves.sql).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fencerow.core.db.run import Steps, execute
from fencerow.core.model.job import NewJob


def lining_up(jobs: Iterable[NewJob]) -> Steps[None]:
    """Let those of these new jobs line up whose ends are handed over, in their order.

    In the transaction of their insert, after it; part of other operations.
    """
    lined = _document(jobs)
    if lined is not None:
        yield from execute("line_up", lined=lined)


def lining_up_again(jobs: Iterable[NewJob]) -> Steps[None]:
    """The same for ids that may stand in a line already: of jobs that a unique one has replaced, or that retention has
    removed since. They keep their places, take what is said now, and have not ended."""
    lined = _document(jobs)
    if lined is not None:
        yield from execute("line_up_again", lined=lined)


def _document(jobs: Iterable[NewJob]) -> str | None:
    lined = [
        {
            "id": job.id,
            "receiver": job.handover.receiver,
            "key": job.handover.key,
            "hold_s": job.handover.hold_s,
            "name": job.template.name,
        }
        for job in jobs
        if job.handover is not None
    ]
    return msgspec.json.encode(lined).decode() if lined else None
