"""Queues at a glance: jobs by state, how long the first due job has waited, whether the queue is paused."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.state import FINAL, LIVE, State
from fencerow.db.run import Procedure, ask
from fencerow.operators import looking
from fencerow.operators.queues import paused_queues


def summaries(*, finished: bool = True) -> Procedure[dict[str, dict[str, Any]]]:
    """Each known queue: jobs by state, seconds that its first due job has waited, its pause.

    Live jobs are walked, and with `finished` those that have ended, too, of which there may be many more.
    """
    states = sorted(LIVE | FINAL if finished else LIVE)
    found: dict[str, dict[str, Any]] = {}

    def of(queue: str) -> dict[str, Any]:
        empty = {state.value: 0 for state in states}
        return found.setdefault(queue, {"queue": queue, "jobs": empty, "oldest_due_s": None, "paused": None})

    for count in (yield from ask(looking.counts())):
        entry = of(count.queue)
        # Among the live lie those, too, that have ended and could not be moved yet.
        entry["jobs"][count.state.value] = entry["jobs"].get(count.state.value, 0) + count.jobs
        waited_s = (count.now_us - count.first_us) / 1e6
        if count.state in (State.QUEUED, State.WAITING) and waited_s >= 0:
            entry["oldest_due_s"] = max(entry["oldest_due_s"] or 0.0, waited_s)
    if finished:
        for queue, state, jobs in (yield from ask(looking.finished_counts())):
            of(queue)["jobs"][state.value] += jobs
    for pause in (yield from ask(paused_queues())):
        of(pause.name)["paused"] = {
            "at_us": pause.paused_at_us,
            "by": pause.paused_by,
            "reason": pause.reason,
        }
    return dict(sorted(found.items()))
