"""Unique jobs, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fencerow.core.config import CoreConfig
    from fencerow.core.model.submission import Submission
    from fencerow.core.offered import Options
    from fencerow.core.store.terms import Settled
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Steps

LOOKED_AT = 5000  # keys at a look


def _offers() -> Options:
    from fencerow.unique.options import UniqueOptions

    return UniqueOptions()


def _settles(asked: Sequence[Submission], *, own: Collection[str], again: bool) -> Steps[Settled]:
    from fencerow.unique.settling import settle_unique

    return settle_unique(asked, own=own, again=again)


def _purges(engine: Engine, _config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import RemovalInRounds
    from fencerow.unique.keys import purge_unique

    return (RemovalInRounds(engine, partial(purge_unique, limit=LOOKED_AT), ("", "")).round,)


def _checks() -> Sequence[Check]:
    from fencerow.unique.checks import examine_unique

    return (Check("unique keys", examine_unique),)


WING = Wing(
    "unique",
    queries=("fencerow.unique",),
    options=("unique", "debounce_s", "debounce_max_s", "throttle_s"),
    offers=_offers,
    settles=_settles,
    purges=_purges,
    used="unique_used",
    checks=_checks,
)
