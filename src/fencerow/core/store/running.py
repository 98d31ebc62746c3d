"""Which attempt of which job this code runs in, if any: primitives name it, and refuse what a stale one writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Protocol

import msgspec

from fencerow.db.run import Operation


class HoldFence(Protocol):
    """An operation: true while (`holder`, `attempt`) is the fence of the job, None when it is not."""

    def __call__(self, job_id: str, *, holder: str, attempt: int) -> Operation[bool | None]: ...


def _never(_what: object) -> bool:
    return False


class Running(msgspec.Struct, frozen=True):
    """The attempt that this code runs in. Set by the worker around each call of a handler that runs one job.

    `hold_fence` locks the job's row against a newer claim until the transaction ends. `check_fence` only looks. It is
    enough on a connection that `ends_job`: its commit is the job's success, whose own fence comes last, so that a
    stale attempt commits nothing of it. A row that was locked there would keep everybody from the job, a cancel, its
    deadline and the heirs of a frozen worker, for as long as the handler works.

    `keeps_out` says of an engine whether the attempt's own open transaction keeps all other writers out of its
    database: what writes there on a connection of its own would wait for the handler, which waits for it.
    """

    job_id: str
    name: str
    queue: str
    holder: str
    attempt: int
    snoozes: int
    hold_fence: HoldFence
    check_fence: HoldFence | None = None
    ends_job: Callable[[object], bool] = _never
    headers: Mapping[str, str] | None = None
    keeps_out: Callable[[object], bool] = _never

    def still_held(self) -> Operation[bool | None]:
        """The fence, to be held inside another operation: `yield from running.still_held().steps()`."""
        return self.hold_fence(self.job_id, holder=self.holder, attempt=self.attempt)

    def on(self, connection: object | None) -> Running:
        """The attempt for an operation on this connection, with the fence that is needed there."""
        if connection is None or self.check_fence is None or not self.ends_job(connection):
            return self
        return msgspec.structs.replace(self, hold_fence=self.check_fence)


running: ContextVar[Running | None] = ContextVar("fencerow_running", default=None)
