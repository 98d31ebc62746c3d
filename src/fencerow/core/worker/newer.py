"""A job whose arguments are newer than this worker's code: it waits for the deploy to reach a worker."""

from __future__ import annotations

import logging

from fencerow.core.db.engine import Engine
from fencerow.core.errors import ArgumentsTooNew
from fencerow.core.model.describe import describe
from fencerow.core.model.job import Claimed
from fencerow.core.model.outcome import Failed, Released
from fencerow.core.store import store

log = logging.getLogger("fencerow.worker")

DELAY_S_MAX = 300.0
DOUBLINGS_MAX = 10
FAILURE_CODE = "args_too_new"


async def given_back(
    engine: Engine, claimed: Claimed, error: ArgumentsTooNew, patience_s: float
) -> Released | Failed:
    """Give the job back uncounted, each time for longer; after `patience_s` of that it fails.

    It counts from the first time since an attempt last ran to its end: an earlier deploy is another story.
    """
    before = await engine.arun(store.releases(claimed.id, reason=error.code))
    if before.since_s > patience_s:
        return Failed(describe(error, FAILURE_CODE))
    delay_s = min(2.0 ** min(before.count, DOUBLINGS_MAX), DELAY_S_MAX)
    log.warning("job %s (%s) is given back for %g s: %s", claimed.id, claimed.name, delay_s, error)
    return Released(f"{error.code} {error.what}", delay_s)
