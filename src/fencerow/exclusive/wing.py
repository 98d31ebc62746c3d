"""Looking at exclusive keys, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def _commands() -> Sequence[click.Command]:
    from fencerow.exclusive.commands import exclusive

    return (exclusive,)


def _checks() -> Sequence[Check]:
    from fencerow.exclusive.checks import examine_keys

    return (Check("exclusive keys", examine_keys),)


WING = Wing("exclusive", queries=("fencerow.exclusive",), checks=_checks, commands=_commands)
