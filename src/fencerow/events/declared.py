"""A declared consumer: the function that a group's events are handed to, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.model.retry import RetryRule
from fencerow.events.groups import END, GroupStart

PARTITIONS = 8
DELIVERIES_MAX = 8
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Consumer:
    """One group of readers as its code declares it. The rule's attempts are deliveries. `packing`: how its app reads
    the results of jobs.
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
