"""The doctor, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Change, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def _commands() -> Sequence[click.Command]:
    from fencerow.doctor.commands import doctor
    from fencerow.doctor.why_command import why

    return doctor, why


WING = Wing(
    "doctor",
    queries=("fencerow.doctor.canary",),
    changes=(Change("note_canary", "canary", "sent", shown=()),),
    commands=_commands,
)
