"""The horizon guard: a chore that ends sessions which hold back the horizon, where a policy says so."""

from __future__ import annotations

import logging

from fencerow.command.times import span
from fencerow.core.chore import Chore, Site
from fencerow.core.model.person import Person, Via
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.wing import witnessed
from fencerow.doctor.horizon.holders import Holder, end_session, holders, is_allowed
from fencerow.doctor.settings import HorizonSettings

log = logging.getLogger("fencerow.worker")

LOOK_S = 30.0
NEVER_S = 3600.0


class HorizonGuard(Chore):
    """Looks every 30 s, in each worker; of several that see the same session one ends it."""

    name = "horizon guard"

    def __init__(self, site: Site) -> None:
        self._engine = site.engine
        self._telemetry = site.telemetry
        self._settings = HorizonSettings.of(site.config)
        self._person = Person(
            f"{site.worker}: horizon_end_after_s", Via.COMMAND, reason="the policy horizon_end_allow"
        )

    @property
    def is_on(self) -> bool:
        """Whether a policy ends anything."""
        return (
            self._engine.traits.has_server
            and self._settings.horizon_end_after_s is not None
            and self._settings.horizon_end_allow is not None
        )

    async def tick(self) -> float:
        if not self.is_on:
            return NEVER_S
        now_us = await self._engine.arun(store.clock())
        for each in await self._engine.arun(holders()):
            if self._is_over(each, now_us):
                await self._end(each, now_us)
        return LOOK_S

    def _is_over(self, holder: Holder, now_us: int) -> bool:
        """Whether the policy names it, it has lasted for so long, and this role may end it."""
        age_s = holder.age_s(now_us)
        limit_s = self._settings.horizon_end_after_s
        return (
            holder.kind == "session"
            and bool(holder.may_end)
            and age_s is not None
            and limit_s is not None
            and age_s >= limit_s
            and is_allowed(holder, self._settings.horizon_end_allow)
        )

    async def _end(self, holder: Holder, now_us: int) -> None:
        if not await witnessed(self._engine, self._person).arun(end_session(holder)):
            return  # it has ended its transaction meanwhile, or another worker was first
        age_s = holder.age_s(now_us) or 0.0
        log.warning("ended the %s: it had held back the horizon for %s", holder.named, span(age_s))
        self._telemetry.emit(
            Fact.SESSION_ENDED, pid=holder.pid, application=holder.application, seconds=age_s
        )
