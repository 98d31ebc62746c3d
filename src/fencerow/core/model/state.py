"""The states of a job and of a worker. The one table of moves between them is `fencerow_proof/moves.py`."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The state of a job. `queued` with a later `run_at` is what others call scheduled."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


LIVE = frozenset({State.WAITING, State.QUEUED, State.RUNNING})
FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})


class WorkerState(StrEnum):
    """The state of a worker's registration. `dead` and `retired` are final: the worker must register again
    under a new id."""

    ALIVE = "alive"
    RETIRED = "retired"
    DEAD = "dead"
