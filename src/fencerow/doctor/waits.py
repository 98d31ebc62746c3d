"""What a suspended job waits for, as the wings know it: others of its flow, a flow of its own, a signal, a time."""

from __future__ import annotations

from fencerow.command.times import Times
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State
from fencerow.db.run import Steps
from fencerow.db.text import shown
from fencerow.doctor.conditions import Condition

WAITS_MAX = 5


def suspended_by_wings(job: JobRecord) -> Steps[list[Condition]]:
    """A condition for everything that a suspended job waits for; none of other jobs."""
    if job.state is not State.WAITING or job.gate is not None:
        return []
    flow = yield from _flow(job)
    return [*([flow] if flow is not None else []), *(yield from _waits(job))]


def _flow(job: JobRecord) -> Steps[Condition | None]:
    from fencerow.flows.looking import NAMES_MAX, awaited_in_flow  # few jobs wait so

    found = yield from awaited_in_flow(job.id).steps()
    if found is None:
        return None
    flow_id, names = found
    few = ", ".join(map(shown, names)) + (", and others" if len(names) == NAMES_MAX else "")
    return Condition(
        "its flow lets it go",
        False,
        f"it waits for {few} in flow {flow_id}" if names else f"it waits for all jobs of flow {flow_id}",
    )


def _waits(job: JobRecord) -> Steps[list[Condition]]:
    from fencerow.steps.memory import waiting_for  # few jobs wait so
    from fencerow.steps.model import JobWait

    def told(each: JobWait) -> str:
        left = "" if each.until_us is None else f"until {Times(each.now_us).full(each.until_us)}"
        if each.until_us is not None and each.until_us <= each.now_us:
            left += ", which is over: a worker wakes it at its next look"
        if each.signal is None:
            return f"it sleeps {left}"
        how = left or "however long it takes"
        return f"it waits for the signal {shown(each.signal)}, {how}; `fencerow signal {job.id} NAME DATA` sends one"

    found = yield from waiting_for(job.id, limit=WAITS_MAX).steps()
    return [
        Condition(
            "its time has come" if each.signal is None else "its signal has come",
            False,
            told(each),
            {"signal": each.signal, "until_us": each.until_us, "since_us": each.since_us},
        )
        for each in found
    ]
