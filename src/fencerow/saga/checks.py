"""Compensations that did not undo what they should."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, warn
from fencerow.db.engine import Engine
from fencerow.saga.storing import failed_sagas

SHOWN_MAX = 5


def examine_sagas(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Whether some steps stand that should be undone."""
    for undo_id, job_id, state in engine.run(failed_sagas(limit=SHOWN_MAX)):
        yield warn(
            "compensation that did not succeed",
            f"job {undo_id}, which undoes the steps of job {job_id}, is {state}",
            f"`fencerow jobs show {undo_id}` says why; `fencerow jobs revive {undo_id}` goes on behind what is undone",
        )
