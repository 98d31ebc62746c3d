"""A change that a program makes of its own worker: the order that an operator would write, to the same row."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypedDict

from fencerow.core.errors import OrderRefused
from fencerow.core.model.misfit import refuse_unknown
from fencerow.core.model.wanted import OrderedChange
from fencerow.core.store import store
from fencerow.core.store.orders import Order
from fencerow.db.run import Operation


class ServedChange(TypedDict, total=False):
    """What a worker shall serve from now on; what is left out stays as it is.

    `slots`: for the queues without their own. `queues`: queues to serve as well, each with slots of its own, or with
    None to use the common slots. `remove`: not served any more. `actor`, `reason`: who orders it, and why.
    """

    slots: int | None
    queues: Mapping[str, int | None] | None
    remove: Sequence[str]
    paused: bool | None
    actor: str | None
    reason: str | None


def ordering_of(holder: str, change: ServedChange, actor: str) -> Generator[Operation[Any], Any, Order]:
    """How the order is written. `actor`: who gives it, if the change does not say.

    Raises:
        WrongCall: the change says something unknown. OrderRefused, InvalidInput: see `store.ordering`.
    """
    refuse_unknown(change, ServedChange.__annotations__, "change()")
    wanted = OrderedChange(
        slots=change.get("slots"),
        queues=change.get("queues") or {},
        remove=change.get("remove", ()),
        paused=change.get("paused"),
    )
    return store.ordering(holder, wanted, actor=change.get("actor") or actor, reason=change.get("reason"))


def not_registered(name: str) -> OrderRefused:
    """There is nobody to order anything."""
    return OrderRefused(
        f"worker {name} has no registration", "it has not started, or stopped", "start it first"
    )
