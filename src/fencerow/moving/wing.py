"""Moving from one database to another, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def _commands() -> Sequence[click.Command]:
    from fencerow.moving.celery.commands import audit_celery
    from fencerow.moving.commands import move

    return (move, audit_celery)


def _checks() -> Sequence[Check]:
    from fencerow.moving.checks import examine_moves

    return (Check("moves", examine_moves),)


CHANGES = (
    ChangeByHand("begin_move", "database", "closed for a move", "other", shown=()),
    ChangeByHand("forget_move", "database", "opened again, its move taken back", "id", shown=()),
)
WING = Wing(
    "moving",
    queries=("fencerow.moving",),
    checks=_checks,
    staying=dict.fromkeys(("moves", "move_parts"), "it tells of moves themselves"),
    changes=CHANGES,
    commands=_commands,
)
