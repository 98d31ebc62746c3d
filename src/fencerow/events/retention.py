"""Retention of the log, in every worker with no leader: an alarm first, then the cut, in short transactions."""

from __future__ import annotations

import logging

import fencerow.events.asides as asides
import fencerow.events.consumers as consumers
import fencerow.events.lag as lag
from fencerow.core.config import CoreConfig
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.db.engine import Engine
from fencerow.db.removal import removed
from fencerow.events.lag import Lag
from fencerow.events.sequencer import sequence
from fencerow.events.settings import EventSettings
from fencerow.retention.settings import RetentionSettings

log = logging.getLogger("fencerow.events")

BATCH_ROWS = 1000
AT_RISK = 0.5  # of what is kept unread: then the group is told
TOLD_PART = 0.1  # of the time that unread events are kept: so long before the cut, at least
DEAD_S = 3600.0


class EventRetention:
    """One round after another: how far the groups are behind, who must be told, what may go."""

    def __init__(self, engine: Engine, config: CoreConfig, telemetry: Telemetry) -> None:
        self._engine = engine
        self._kept = EventSettings.of(config)
        self._aside_s = RetentionSettings.of(config).retention_failed_s
        self._telemetry = telemetry

    async def round(self) -> None:
        """Do all there is to do now."""
        # Where no reader runs, nobody else gives places, and what has none cannot go.
        while (await self._engine.arun(sequence(None, wait=False))).count:
            pass
        for group in await self._engine.arun(lag.lags()):
            self._telemetry.emit(
                Fact.EVENTS_LAG, group=group.group, events=group.events, seconds=group.seconds
            )
            await self._watch(group)
        await self._trim()
        await self._engine.arun(asides.discard(None, age_s=self._aside_s))
        await self._engine.arun(consumers.forget_dead_drainers(age_s=DEAD_S))

    async def _watch(self, group: Lag) -> None:
        """Tell of a group that is about to lose events: in its row, in the log, by telemetry."""
        if not is_at_risk(group, self._kept):
            if group.alarmed_at_us is not None and await self._engine.arun(lag.calm(group.group)):
                log.info("group %s has caught up", group.group)
            return
        self._telemetry.emit(
            Fact.EVENTS_AT_RISK, group=group.group, events=group.events, seconds=group.seconds
        )
        if group.alarmed_at_us is None and await self._engine.arun(lag.alarm(group.group)):
            log.error(
                "group %s has not read events of %.0f s ago; retention will remove them unread. Run its consumer, "
                "or `fencerow events remove %s` if nobody needs it any more",
                group.group,
                group.seconds,
                group.group,
            )

    async def _trim(self) -> None:
        """Remove what may go, half of the time at most."""
        kept = self._kept
        trimming = lag.trim(
            age_s=kept.retention_events_s,
            unread_age_s=kept.retention_unread_events_s,
            told_s=told_s(kept),
            keep=kept.retention_events_max,
            limit=BATCH_ROWS,
        )
        if total := await removed(self._engine, trimming, limit=BATCH_ROWS):
            self._telemetry.emit(Fact.EVENTS_TRIMMED, count=total)


def told_s(kept: EventSettings) -> float:
    """How long before the cut a group must have been told."""
    return TOLD_PART * kept.retention_unread_events_s


def is_at_risk(group: Lag, kept: EventSettings) -> bool:
    """Whether a group is so far behind that retention comes near what it has not read."""
    places = kept.retention_events_max
    behind = group.head - group.cursor + group.unplaced
    by_number = places is not None and group.events > 0 and behind > AT_RISK * places
    return by_number or group.seconds > AT_RISK * kept.retention_unread_events_s
