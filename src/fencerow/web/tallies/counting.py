"""What a gateway counts of its hooks. Strangers may send what is refused, so a webhook never costs a statement: counts
stay in memory, and are added to the table every few seconds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from fencerow.core.client.base import ClientBase
from fencerow.db.run import ask
from fencerow.web.tallies.operations import HookCounts, note_hooks

log = logging.getLogger("fencerow.web")

NOTED_S: Final = 5.0
REFUSAL_MAX: Final = 200


class HookTallies:
    """For one event loop. It is for people who look, and decides nothing: what a gateway that is killed has counted in
    its last seconds is missing."""

    def __init__(self, client: Callable[[], ClientBase], *, noted_s: float = NOTED_S) -> None:
        self._client = client
        self._noted_s = noted_s
        self._counts: dict[str, HookCounts] = {}
        self._latest: dict[tuple[str, str], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._noting: asyncio.Task[None] | None = None

    def took(self, hook: str, *, repeated: bool) -> None:
        """A webhook became a job, or had come before."""
        counts = self._of(hook)
        if repeated:
            counts.repeated += 1
        else:
            counts.received += 1
        self._latest[hook, "repeated" if repeated else "received"] = time.monotonic()

    def refused(self, hook: str, why: str) -> None:
        """A webhook was refused. `why` is in words of ours."""
        counts = self._of(hook)
        counts.refused += 1
        counts.refusal = why[:REFUSAL_MAX]
        self._latest[hook, "refused"] = time.monotonic()

    async def aclose(self) -> None:
        """Note what is counted, and stop."""
        if self._timer is not None:
            self._timer.cancel()
        if self._noting is not None:
            await self._noting
        await self._note()

    def _of(self, hook: str) -> HookCounts:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._noted_s, self._begin)
        return self._counts.setdefault(hook, HookCounts(hook))

    def _begin(self) -> None:
        self._timer = None
        if self._noting is None or self._noting.done():
            self._noting = asyncio.ensure_future(self._note())

    async def _note(self) -> None:
        """Add what was counted. If that fails it is lost, as nobody knows whether it was done."""
        counted, latest, now = self._counts, self._latest, time.monotonic()
        self._counts, self._latest = {}, {}
        for (hook, kind), at in latest.items():
            setattr(counted[hook], f"{kind}_s", now - at)
        if not counted:
            return
        try:
            await self._client().arun(ask(note_hooks([counted[name] for name in sorted(counted)])))
        except Exception as error:  # nobody waits for it
            log.debug("it was not noted what came to hooks: %s", error)
