"""Removing orphans of the store of large payloads, again and again, in every worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from fencerow.core.chore import Chore
from fencerow.core.client.base import ClientBase
from fencerow.core.model.text import amount
from fencerow.payloads.outside.store import PayloadStore
from fencerow.payloads.outside.sweeping import Sweep

log = logging.getLogger("fencerow.payloads")

SWEEP_S = 3600.0


class OutsideSweep(Chore):
    """Removes what no job refers to. Retention removes the jobs, and this what they had outside."""

    name = "payloads outside"

    def __init__(self, client: Callable[[], ClientBase], store: PayloadStore, orphan_s: float) -> None:
        self._made = client, store, orphan_s
        self._sweep: Sweep | None = None

    def for_worker(self) -> Chore:
        return OutsideSweep(*self._made)

    async def tick(self) -> float:
        if self._sweep is None:
            client, store, orphan_s = self._made
            self._sweep = Sweep(client().engine, store, orphan_s)
        removed = await asyncio.to_thread(self._sweep.remove)
        if removed:
            log.info("removed %s of the store outside that no job referred to", amount(removed, "payload"))
        return SWEEP_S
