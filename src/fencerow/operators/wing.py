"""What operators do to a running system, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def _commands() -> Sequence[click.Command]:
    from fencerow.operators.queue_commands import queues
    from fencerow.operators.share_commands import shares
    from fencerow.operators.top.command import top
    from fencerow.operators.worker_commands import workers

    return queues, shares, top, workers


WING = Wing("operators", queries=("fencerow.operators",), commands=_commands)
