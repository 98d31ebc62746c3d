"""Retention, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fencerow.core.chore import Chore, Site
    from fencerow.core.config import Settings


def _chores(site: Site) -> Sequence[Chore]:
    from fencerow.retention.disowner import Disowner
    from fencerow.retention.maintenance import MaintenanceChore

    return Disowner(site), MaintenanceChore(site.engine, site.config, site.telemetry)


def _checks() -> Sequence[Check]:
    from fencerow.retention.checks import examine_periods

    return (Check("periods", examine_periods),)


def _settings() -> type[Settings]:
    from fencerow.retention.settings import RetentionSettings

    return RetentionSettings


WING = Wing("retention", queries=("fencerow.retention",), chores=_chores, checks=_checks, settings=_settings)
