"""The compensation: a job that calls what undoes the steps of another, the last one first, each once remembered."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from fencerow.core.errors import DeclarationError
from fencerow.core.model.packing import Packing
from fencerow.core.model.signature import parameters_of
from fencerow.core.model.value import ValueCodec
from fencerow.core.worker.context import Job
from fencerow.db.engine import Engine
from fencerow.saga.errors import UndoMissing
from fencerow.saga.storing import UndoStep, undo_steps
from fencerow.steps.job_verbs import StepVerbs
from fencerow.steps.results import unpacked


async def undoing(
    job: Job, undos: Mapping[str, Callable[[Any], Any]], engine: Engine, packing: Packing
) -> list[str]:
    """Undo what is left of the steps, and return their names in that order.

    Raises:
        UndoMissing: a function is no longer listed. What stands before it is undone and remembered.
    """
    assert isinstance(job, StepVerbs)
    steps = await engine.arun(undo_steps(job.id))
    for each in steps:
        undo = undos.get(each.undo)
        if undo is None:
            raise UndoMissing(
                f"the step {each.name!r} of job {each.job_id} is undone by {each.undo!r}, which {job.name!r} has not",
                f"its saga lists: {', '.join(sorted(undos))}",
                f"list a function of that name in app.saga(..., undo=[...]); then `fencerow jobs revive {job.id}`",
            )
        await job.step(each.name, _undone, undo, _result(packing, undo, each))
    return [each.name for each in steps]


async def _undone(undo: Callable[[Any], Any], result: Any) -> None:
    """One call; what it returns is not kept."""
    if inspect.iscoroutinefunction(undo):
        await undo(result)
    else:
        await asyncio.to_thread(undo, result)


def _result(packing: Packing, undo: Callable[[Any], Any], step: UndoStep) -> Any:
    """The step's result, by the type of the parameter that takes it; without one as plain JSON data."""
    encoded = unpacked(packing, step.job_id, step.name, step.result)
    return codec_of_first(undo).decode(encoded)


def codec_of_first(undo: Callable[[Any], Any]) -> ValueCodec:
    """How the first parameter of the function is read."""
    try:
        parameters = parameters_of(undo, None)
    except (DeclarationError, TypeError, ValueError):
        return ValueCodec.of(Any)
    annotation = parameters[0].annotation if parameters else Any
    return ValueCodec.of(Any if annotation is inspect.Parameter.empty else annotation)
