"""Which attempt of which job this code runs in, if any: primitives name it, and refuse what a stale one writes."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from fencerow.db.statement import Operation


@dataclass(frozen=True, slots=True)
class Running:
    """The attempt that this code runs in. Set by the worker around each call of a handler that runs one job.

    `still_held` is an operation to be run inside another (`yield from running.still_held().steps()`): true
    while (`holder`, `attempt`) is the fence of the job, whose row it locks against a newer claim until the
    transaction ends; None when it is not.
    """

    job_id: str
    name: str
    queue: str
    holder: str
    attempt: int
    snoozes: int
    still_held: Callable[[], Operation[bool | None]]


running: ContextVar[Running | None] = ContextVar("fencerow_running", default=None)
