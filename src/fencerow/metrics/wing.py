"""Metrics, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.config import Settings


def _commands() -> Sequence[click.Command]:
    from fencerow.metrics.commands import metrics

    return (metrics,)


def _settings() -> type[Settings]:
    from fencerow.metrics.settings import MetricsSettings

    return MetricsSettings


WING = Wing("metrics", queries=("fencerow.metrics",), commands=_commands, settings=_settings)
