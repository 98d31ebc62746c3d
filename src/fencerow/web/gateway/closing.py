"""What a gateway process knows of maintenance.

It looks when a request comes and what it knows is a second old; while no request comes it looks for nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from fencerow.core.client.base import ClientBase
from fencerow.core.errors import FencerowError
from fencerow.db.run import ask
from fencerow.web.errors import UnderMaintenance
from fencerow.web.maintenance.operations import Maintenance, read

log = logging.getLogger("fencerow.web")

LOOK_S = 1.0  # how old may be what is known
PATIENCE_S = 1.0  # how long a request waits for the look; then what was known counts


class Closing:
    """What a gateway process knows of maintenance. For one event loop."""

    def __init__(
        self, client: Callable[[], ClientBase], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._clock = clock
        self._known: Maintenance | None = None
        self._known_s: float | None = None  # when the look began that brought it
        self._looking: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Refuse the request while maintenance is on. While the database cannot be asked, what was known counts.

        Raises:
            UnderMaintenance: it is on.
        """
        if self._known_s is None or self._clock() - self._known_s >= LOOK_S:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look())
            await asyncio.wait({self._looking}, timeout=PATIENCE_S)
        if self._known is not None:
            raise UnderMaintenance(
                "the gateway is under maintenance",
                "an operator has begun it; nothing was stored",
                "repeat it after the seconds in Retry-After",
                retry_after_s=self._known.retry_after_s,
            )

    async def aclose(self) -> None:
        """End the look that is under way."""
        if (looking := self._looking) is not None:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _look(self) -> None:
        began_s = self._clock()
        try:
            self._known = await self._client().arun(ask(read()))
        except FencerowError as error:  # the request meets the same, and is answered for it
            log.debug("it is not known whether maintenance is on: %s", error)
        finally:
            self._known_s, self._looking = began_s, None
