"""Removing orphans of the store of large payloads, again and again, in every worker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from fencerow.core.chore import Chore
from fencerow.core.client.base import ClientBase
from fencerow.db.text import amount
from fencerow.payloads.outside.owner import OwnStore
from fencerow.payloads.outside.sweeping import Sweep

log = logging.getLogger("fencerow.payloads")

SWEEP_S = 3600.0


class OutsideSweep(Chore):
    """Removes what no job refers to. Retention removes the jobs, and this what they had outside.

    Every step is a call of the store, with its time limit. A worker that ends waits for none.
    """

    name = "payloads outside"

    def __init__(self, client: Callable[[], ClientBase], store: OwnStore, orphan_s: float) -> None:
        self._made = client, store, orphan_s
        self._sweep: Sweep | None = None

    def for_worker(self) -> Chore:
        return OutsideSweep(*self._made)

    async def tick(self) -> float:
        client, store, orphan_s = self._made
        sweep = self._sweep or Sweep(client().engine, store.store, orphan_s)
        self._sweep = None  # what hangs, or is left behind, may still write into it
        removed, step = 0, partial(next, sweep.steps(), None)
        try:
            while (one := await store.calls.arun(step)) is not None:
                removed += one
        finally:
            if removed:
                text = "removed %s of the store outside that no job referred to"
                log.info(text, amount(removed, "payload"))
        self._sweep = sweep
        return SWEEP_S
