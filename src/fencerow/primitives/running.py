"""Which attempt of which job this code runs in, if any: primitives name it, and refuse what a stale one writes."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

import msgspec

from fencerow.db.statement import Operation


class HoldFence(Protocol):
    """An operation: true while (`holder`, `attempt`) is the fence of the job, None when it is not.

    It locks the job's row against a newer claim until the transaction ends.
    """

    def __call__(self, job_id: str, *, holder: str, attempt: int) -> Operation[bool | None]: ...


class Running(msgspec.Struct, frozen=True):
    """The attempt that this code runs in. Set by the worker around each call of a handler that runs one job."""

    job_id: str
    name: str
    queue: str
    holder: str
    attempt: int
    snoozes: int
    hold_fence: HoldFence

    def still_held(self) -> Operation[bool | None]:
        """The fence, to be held inside another operation: `yield from running.still_held().steps()`."""
        return self.hold_fence(self.job_id, holder=self.holder, attempt=self.attempt)


running: ContextVar[Running | None] = ContextVar("fencerow_running", default=None)
