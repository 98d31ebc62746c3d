"""How a worker is, for service managers, probes and supervisors. Read from any thread, without loop or database."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from fencerow.core.config import CoreConfig

KEEPER_S_MIN = 60.0  # a database that does not answer keeps a renewal waiting for less


class Phase(StrEnum):
    """Where a worker is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    LEAVING = "leaving"
    ENDED = "ended"


class Vitals(msgspec.Struct, frozen=True):
    """`faults` says why the process should be ended from outside, since it cannot help itself.

    A database that is away is no fault: the worker waits for it, and a new process could do no better.
    """

    phase: Phase
    holds_lease: bool = False
    running: int = 0
    slots: int = 0
    connections: int = 0  # at most, to PostgreSQL
    faults: tuple[str, ...] = ()
    is_done: bool = (
        False  # it has ended, and not by a signal: nothing was left to do, or an operator ordered it
    )

    @property
    def is_ready(self) -> bool:
        """Whether it takes jobs."""
        return self.phase is Phase.RUNNING and self.holds_lease


def found_faults(
    config: CoreConfig, *, keeper_silent_s: float, loop_silent_s: float, drain_s: float
) -> tuple[str, ...]:
    """What the worker itself cannot mend.

    A handler may block the loop for as long as any job may take: the watch of the loop deals with it until then.
    """
    keeper_max_s = max(KEEPER_S_MIN, 2 * config.lease_s)
    found = []
    if keeper_silent_s > keeper_max_s:
        found.append(f"the keeper has made no turn for {keeper_silent_s:.0f} s")
    if loop_silent_s > drain_s:
        found.append(f"the event loop has not answered for {loop_silent_s:.0f} s")
    return tuple(found)
