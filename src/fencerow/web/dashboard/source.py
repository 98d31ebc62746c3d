"""From where pages read: the database itself, or a replica of it that is configured, as long as it keeps up.

Actions are always made on the database itself. After one, pages read from there for a while, so that who pressed sees
what became of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError, FencerowError
from fencerow.core.store.connect import open_engine
from fencerow.db.engine import Engine
from fencerow.db.url import PostgresUrl, parse_url
from fencerow.web.dashboard.counting import PATIENCE_S, replayed, wal_position
from fencerow.web.settings import WebSettings

log = logging.getLogger("fencerow.web")

KEPT_S = 1.0
GONE_S = 10.0  # one that does not answer is asked again after that


@dataclass(frozen=True, slots=True)
class Chosen:
    """From where one look reads. `told`: what its page says of that; nothing without a replica."""

    engine: Engine
    told: str = ""


class Source:
    """For one event loop. Without `web_replica_url` it is the database itself.

    Raises:
        ConfigError: `web_replica_url` names no PostgreSQL server.
    """

    def __init__(
        self, settings: WebSettings, config: CoreConfig, primary: Callable[[], Engine], url: str | None = None
    ) -> None:
        url = url or settings.web_replica_url
        self._primary = primary
        self._lag_max_s = settings.web_replica_lag_s
        self._replica = None if url is None else _opened(config, url)
        self._looking: asyncio.Task[float | None] | None = None
        self._looked_s = 0.0
        self._lag_s: float | None = None
        self._pressed_s = 0.0

    async def chosen(self) -> Chosen:
        """From where to read now: asked of both at most once a second, for all pages of the process."""
        if self._replica is None:
            return Chosen(self._primary())
        if time.monotonic() < self._pressed_s:
            return Chosen(self._primary(), "read from the primary, because something was changed just now")
        lag_s = await self._lag(self._replica)
        if lag_s is None:
            return Chosen(self._primary(), "read from the primary: the replica does not answer")
        if lag_s > self._lag_max_s:
            return Chosen(self._primary(), f"read from the primary: the replica is {lag_s:.0f} s behind")
        return Chosen(self._replica, f"read from the replica, {lag_s:.1f} s behind")

    def pressed(self) -> None:
        """Somebody has changed something."""
        self._pressed_s = time.monotonic() + self._lag_max_s

    async def aclose(self) -> None:
        """Close the connections to the replica."""
        if self._looking is not None:
            await asyncio.wait([self._looking])
        if self._replica is not None:
            await self._replica.aclose()
            self._replica.close()

    async def _lag(self, replica: Engine) -> float | None:
        if self._looking is None or (self._looking.done() and time.monotonic() - self._looked_s > KEPT_S):
            self._looked_s = time.monotonic()
            self._looking = asyncio.ensure_future(self._looked(replica))
        return await asyncio.shield(self._looking)

    async def _looked(self, replica: Engine) -> float | None:
        """By how many seconds the replica is behind; None if it does not answer.

        It is not behind if it has all that the primary had written before. If that is not known, the time since its
        last transaction counts.
        """
        written: int | None = None
        try:
            written = await self._primary().arun(wal_position())
        except FencerowError as error:
            log.info("the primary does not say how far its log goes: %s", error)
        try:
            async with asyncio.timeout(
                PATIENCE_S
            ):  # also for a connection, which may take longer than a page may
                position, since_us = await replica.arun(replayed())
        except (FencerowError, TimeoutError) as error:
            log.warning("the replica of the dashboard does not answer: %s", str(error) or "it takes too long")
            self._looked_s = time.monotonic() + GONE_S
            return None
        if position is None or (written is not None and position >= written):
            return 0.0
        return since_us / 1e6


def _opened(config: CoreConfig, url: str) -> Engine:
    if not isinstance(parse_url(url), PostgresUrl):
        raise ConfigError(
            "web_replica_url names no PostgreSQL server",
            "a standby that streams from the database of FENCEROW_URL is expected",
            "correct it, or leave it out",
        )
    return open_engine(replace(config, url=url, listen_url=None))
