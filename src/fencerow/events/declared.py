"""A declared consumer: the function that a group's events are handed to, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.model.retry import RetryRule
from fencerow.events.event import Event
from fencerow.events.groups import END, GroupStart

PARTITIONS = 8
DELIVERIES_MAX = 8
TIMEOUT_S = 60.0


class PartitionPage(Protocol):
    """The next events of a partition in the hands of a handler that may begin several at once. It is still asked for
    each, one after the other, and each is judged alone."""

    async def hand(self, event: Event) -> None:
        """As the handler itself."""

    def has_begun(self, position: int) -> bool:
        """Whether this event is under way already, or done: then who stops asks for it still."""
        ...


@dataclass(frozen=True)
class Consumer:
    """One group of readers as its code declares it. The rule's attempts are deliveries. `packing`: how its app reads
    the results of jobs. `paged`: what takes the next events of a partition as a page, if the handler can use that.
    """

    group: str
    topics: tuple[str, ...]
    function: Callable[..., Any]
    is_async: bool
    rule: RetryRule
    partitions: int = PARTITIONS
    start: GroupStart = END
    timeout_s: float = TIMEOUT_S
    crashes_max: int = 3
    packing: Packing = PLAIN
    paged: Callable[[Sequence[Event]], PartitionPage] | None = None
