"""What a job does with its run from the page: it is sent a signal, or goes on from one of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.db.text import amount
from fencerow.payloads.shown import told_of
from fencerow.web.dashboard.counting.inside import InsideJob, SignalShown, StepShown
from fencerow.web.dashboard.redacting import Redactor
from fencerow.web.dashboard.screen import Act, Action, PressAnswer
from fencerow.web.dashboard.words import NOTHING, bytes_told

NAMES_TOLD = 8


def after_of(query: Mapping[str, str]) -> int:
    """Behind which place the steps of a page stand.

    Raises:
        InvalidInput: it is no place.
    """
    text = query.get("steps") or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= 7):
        raise InvalidInput(
            f"steps is {ascii(text)[:40]}", "a place in a run is expected", "look at the job anew"
        )
    return int(text)


def shown_steps(job: str, inside: InsideJob, redactor: Redactor) -> dict[str, Any]:
    """What steps returned and signals brought, without what is secret: the text beside each."""
    return {
        "step_data": [_shown(job, each, redactor) for each in inside.steps],
        "signal_data": [_shown(job, each, redactor) for each in inside.signals],
    }


def _shown(job: str, each: StepShown | SignalShown, redactor: Redactor) -> tuple[Any, str | None]:
    """The data, or what is said in its place."""
    if not each.has_data:
        return None, f"{bytes_told(each.size)}, too long for a page: `fencerow steps show` has it"
    sealed = told_of(each.data)
    return (None, sealed) if sealed is not None else (redactor.shown(job, each.data), None)


async def signal(act: Act) -> PressAnswer:
    """Send it a signal. A form that is sent twice sends one."""
    job_id, name, text = act.params["id"], act.form.get("name", ""), act.form.get("data", "")
    pressed = "\n".join((act.visitor.name, job_id, name, text, act.form.get("at", "")))
    sent = await act.client.asignal(
        job_id,
        name,
        _read(text),
        signal_id=str(uuid5(NAMESPACE_OID, pressed)) if act.form.get("at") else None,
    )
    if sent.replay:
        return PressAnswer("This signal was sent already, and is kept once.", changed=False)
    if sent.woken:
        return PressAnswer(f"The job waited for the signal {name}, and is queued.")
    return PressAnswer(f"The signal {name} is kept until the job waits for it.")


def _read(text: str) -> Any:
    """What was written into the form, which is JSON; nothing is null."""
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"the data of the signal are no JSON: {error}", "text stands in quotes", "correct the data"
        ) from None


async def revive_from(act: Act) -> PressAnswer:
    """Queue it again after its end: it does this step and all behind it anew."""
    forgotten = await act.client.arevive_from(act.params["id"], act.form.get("step", ""), reason=act.reason)
    few = ", ".join(forgotten[:NAMES_TOLD]) or NOTHING
    more = f" and {amount(len(forgotten) - NAMES_TOLD, 'more step')}" if len(forgotten) > NAMES_TOLD else ""
    return PressAnswer(f"The job is queued again. It does anew: {few}{more}.")


ACTIONS = (Action("/jobs/{id}/signal", signal), Action("/jobs/{id}/revive-from", revive_from))
