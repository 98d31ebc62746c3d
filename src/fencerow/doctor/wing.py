"""The doctor, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.chore import Chore, Site
    from fencerow.core.config import Settings


def _commands() -> Sequence[click.Command]:
    from fencerow.doctor.commands import doctor
    from fencerow.doctor.why_command import why

    return doctor, why


def _chores(site: Site) -> Sequence[Chore]:
    from fencerow.doctor.settings import HorizonSettings

    settings = HorizonSettings.of(site.config)
    if settings.horizon_end_after_s is None or settings.horizon_end_allow is None:
        return ()  # nobody asked for it, so nobody loads it
    from fencerow.doctor.horizon.guard import HorizonGuard

    guard = HorizonGuard(site)
    return (guard,) if guard.is_on else ()


def _settings() -> type[Settings]:
    from fencerow.doctor.settings import HorizonSettings

    return HorizonSettings


WING = Wing(
    "doctor",
    queries=("fencerow.doctor.canary", "fencerow.doctor.horizon"),
    chores=_chores,
    changes=(
        ChangeByHand("note_canary", "canary", "sent", shown=()),
        ChangeByHand("end_session", "session", "ended", shown=()),
    ),
    commands=_commands,
    settings=_settings,
)
