"""A job whose arguments are newer than this worker's code: it waits for the deploy to reach a worker."""

from __future__ import annotations

import logging

from fencerow.db.engine import Engine
from fencerow.errors import ArgumentsTooNew
from fencerow.model.describe import describe
from fencerow.model.job import Claimed, Happening
from fencerow.model.outcome import Failed, Released
from fencerow.store import store

log = logging.getLogger("fencerow.worker")

DELAY_S_MAX = 300.0
FAILURE_CODE = "args_too_new"


async def given_back(
    engine: Engine, claimed: Claimed, error: ArgumentsTooNew, patience_s: float
) -> Released | Failed:
    """Give the job back uncounted, each time for longer; after `patience_s` of that it fails."""
    before = [each for each in await engine.arun(store.events(claimed.id)) if _was_this(each)]
    if before:
        waited_s = (await engine.arun(store.clock()) - before[0].at_us) / 1e6
        if waited_s > patience_s:
            return Failed(describe(error, FAILURE_CODE))
    delay_s = min(2.0 ** len(before), DELAY_S_MAX)
    log.warning("job %s (%s) is given back for %g s: %s", claimed.id, claimed.name, delay_s, error)
    return Released(f"{error.code} {error.what}", delay_s)


def _was_this(event: Happening) -> bool:
    detail = event.detail if isinstance(event.detail, dict) else {}
    inner = detail.get("detail")
    reason = inner.get("reason", "") if isinstance(inner, dict) else ""
    return event.kind == "released" and str(reason).startswith(ArgumentsTooNew.code)
