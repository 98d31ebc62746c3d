"""The planner of capacity, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def _commands() -> Sequence[click.Command]:
    from fencerow.planning.commands import plan

    return (plan,)


WING = Wing("planning", queries=("fencerow.planning",), commands=_commands)
