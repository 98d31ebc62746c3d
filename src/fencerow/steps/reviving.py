"""A finished job goes on from one of its steps: what it remembers from there on is forgotten as it is queued again."""

from __future__ import annotations

from fencerow.core.client.moving import check_reason
from fencerow.core.client.refs import Ref, resolving
from fencerow.core.errors import InvalidInput
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.moves import revive
from fencerow.db.run import Procedure, Steps, WakeUp, ask, operation
from fencerow.db.text import shown
from fencerow.steps.memory import forget_from, steps_of

NAMES_SHOWN = 20


@operation()
def revive_from(
    job_id: str, step: str, *, actor: str | None, reason: str | None = None
) -> Steps[tuple[Requeued, list[str]]]:
    """Queue a finished job again without its memory from this step on; returns what was forgotten, too: all or nothing.

    Raises:
        InvalidInput: it remembers no such step. And whatever `revive` does.
    """
    remembered = yield from steps_of(job_id).steps()
    place = next((each.seq for each in remembered if each.name == step), None)
    forgotten: list[str] = []
    if place is not None:
        forgotten = yield from forget_from(job_id, place).steps()
    revived = yield from revive(job_id, actor=actor, reason=reason).steps()
    if place is None:
        known = ", ".join(each.name for each in remembered[:NAMES_SHOWN]) or "nothing"
        raise InvalidInput(
            f"job {job_id} remembers no step {shown(step)}", f"it remembers: {known}", "name one of these"
        )
    return revived, forgotten


def reviving_from(ref: Ref, step: str, actor: str | None, reason: str | None) -> Procedure[list[str]]:
    """Queue the job, say so, and return what it does again."""
    check_reason(reason)
    job_id = yield from resolving(ref)
    revived, forgotten = yield from ask(revive_from(job_id, step, actor=actor, reason=reason))
    yield WakeUp(hints_of_queued([revived]))
    return forgotten
