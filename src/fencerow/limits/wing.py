"""Limits, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing
from fencerow.turns.limiting import limit_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import click

    from fencerow.core.config import CoreConfig
    from fencerow.core.model.job import Claimed
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.core.worker.brought import BoundedClaim
    from fencerow.db.engine import Engine
    from fencerow.db.run import Operation, Steps
    from fencerow.turns.limiting import LimitRule

STATES_KEPT_S = (
    60.0  # of keys under limits, since somebody started there: to forget what is as new costs nobody
)
STATES = 1000  # at a look


def _bound_claim(
    queue: str, wanted: int, claim: Callable[[int], Operation[list[Claimed]]]
) -> Operation[BoundedClaim]:
    from fencerow.limits.limits import bound_claim

    return bound_claim(queue, wanted, claim)


class _Limiter:
    """See `turns/limiting.py`."""

    def lock(self, names: Sequence[str]) -> Steps[Mapping[str, LimitRule]]:
        from fencerow.limits.named import locked

        return (yield from locked(names))

    def refuse_unknown(self, names: Sequence[str]) -> Steps[None]:
        from fencerow.limits.named import refuse_unknown

        yield from refuse_unknown(names)


def _purges(engine: Engine, _config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import RemovalInRounds
    from fencerow.limits.named import forget_states

    return (RemovalInRounds(engine, partial(forget_states, age_s=STATES_KEPT_S, limit=STATES), "").round,)


def _checks() -> Sequence[Check]:
    from fencerow.limits.checks import examine_limits

    return (Check("limits", examine_limits),)


def _commands() -> Sequence[click.Command]:
    from fencerow.limits.commands import limits

    return (limits,)


limit_by(_Limiter())  # whoever gives turns asks it
CHANGES = (
    ChangeByHand("define_limit", "limit", "made", "name", shown=("definition", "reason")),
    ChangeByHand("redefine_limit", "limit", "changed", "name", shown=("definition", "reason")),
    ChangeByHand("remove_limit", "limit", "removed", "name", shown=()),
)
WING = Wing(
    "limits",
    queries=("fencerow.limits",),
    bound_claim=_bound_claim,
    purges=_purges,
    used="limits_used",
    checks=_checks,
    changes=CHANGES,
    commands=_commands,
)
