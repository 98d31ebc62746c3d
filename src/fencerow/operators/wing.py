"""What operators do to a running system, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Wing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from fencerow.db.run import Param, Rows


def _commands() -> Sequence[click.Command]:
    from fencerow.operators.queue_commands import queues
    from fencerow.operators.share_commands import shares
    from fencerow.operators.top.command import top
    from fencerow.operators.worker_commands import workers

    return queues, shares, top, workers


def _share(params: Mapping[str, Param], _rows: Rows) -> Sequence[str]:
    return ["/".join((str(params["queue"]), str(params["share"])))]


def _noted(params: Mapping[str, Param], _rows: Rows) -> Sequence[str]:
    import msgspec

    return [each["id"] for each in msgspec.json.decode(str(params["notes"]))]


CHANGES = (
    ChangeByHand("cancel_idle", "job", "cancelled"),
    ChangeByHand("ask_cancel", "job", "asked to stop"),
    ChangeByHand("revive", "job", "revived"),
    ChangeByHand("note_changed", "job", "changed", targets=_noted, always=True, shown=("notes",)),
    ChangeByHand("delete", "job", "deleted", shown=()),
    ChangeByHand("reclaim", "job", "taken back from its worker", shown=()),
    ChangeByHand("pause_queue", "queue", "paused", "queue"),
    ChangeByHand("resume_queue", "queue", "resumed", "queue", shown=()),
    ChangeByHand("weigh_share", "share", "weighed", targets=_share, shown=("weight",)),
    ChangeByHand("forget_weight", "share", "weighed no more", targets=_share, shown=()),
    ChangeByHand("order_worker", "worker", "ordered", "holder", shown=("wanted", "reason")),
    ChangeByHand("retire", "worker", "ended", "holder", shown=()),
)
WING = Wing("operators", queries=("fencerow.operators",), changes=CHANGES, commands=_commands)
