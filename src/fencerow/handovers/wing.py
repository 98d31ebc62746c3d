"""Handovers, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, SubmitGrant, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.chore import Chore, Site
    from fencerow.core.config import CoreConfig
    from fencerow.core.model.job import NewJob
    from fencerow.core.offered import Options
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Steps

CONFIRMED_KEPT_S = 86_400.0  # so long at least a repeated confirmation is told that it is one
LOOKED_AT = 1000  # rows at a look
LOOK_EVERY_S = 30.0  # whether there are any
USED = "handovers_used"


def _offers() -> Options:
    from fencerow.handovers.options import HandoverOptions

    return HandoverOptions()


def _stored(jobs: Sequence[NewJob], *, again: bool) -> Steps[None]:
    from fencerow.handovers.lines import lining_up, lining_up_again

    return (lining_up_again if again else lining_up)(jobs)


def _chores(site: Site) -> Sequence[Chore]:
    from fencerow.core.background.dormant import Dormant

    def mender() -> Chore:
        from fencerow.handovers.mender import Mender

        return Mender(site)

    return (Dormant("handovers", lambda: site.engine, USED, mender, every_s=LOOK_EVERY_S),)


def _purges(engine: Engine, _config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import RemovalInRounds
    from fencerow.handovers.handovers import purge

    return (RemovalInRounds(engine, partial(purge, age_s=CONFIRMED_KEPT_S, limit=LOOKED_AT), 0).round,)


def _checks() -> Sequence[Check]:
    from fencerow.handovers.checks import examine_handovers

    return (Check("handovers", examine_handovers),)


def _commands() -> Sequence[click.Command]:
    from fencerow.handovers.commands import handovers

    return (handovers,)


CHANGES = (ChangeByHand("confirm_handover", "handover", "confirmed", "id", shown=("receiver",)),)
GRANTED = (
    SubmitGrant("INSERT (job_id, receiver, key, hold_s, name, lined_at) ON handovers"),
    SubmitGrant("SELECT (job_id) ON handovers", keyed=True),
)
WING = Wing(
    "handovers",
    queries=("fencerow.handovers",),
    options=("handover",),
    offers=_offers,
    stored=_stored,
    granted=GRANTED,
    chores=_chores,
    purges=_purges,
    used=USED,
    checks=_checks,
    changes=CHANGES,
    commands=_commands,
)
