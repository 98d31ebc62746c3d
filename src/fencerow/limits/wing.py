"""Limits, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import click

    from fencerow.core.db.run import Operation
    from fencerow.core.model.job import Claimed
    from fencerow.core.worker.brought import BoundedClaim


def _bound_claim(
    queue: str, wanted: int, claim: Callable[[int], Operation[list[Claimed]]]
) -> Operation[BoundedClaim]:
    from fencerow.limits.limits import bound_claim

    return bound_claim(queue, wanted, claim)


def _checks() -> Sequence[Check]:
    from fencerow.limits.checks import examine_limits

    return (Check("limits", examine_limits),)


def _commands() -> Sequence[click.Command]:
    from fencerow.limits.commands import limits

    return (limits,)


WING = Wing(
    "limits", queries=("fencerow.limits",), bound_claim=_bound_claim, checks=_checks, commands=_commands
)
