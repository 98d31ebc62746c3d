"""From a bounded look at what came and ended to the numbers that a picture shows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fencerow.client import Client
from fencerow.core.errors import InvalidInput
from fencerow.db.run import ask
from fencerow.web.dashboard.counting.traffic import LOOKED_AT_MAX, SUBMITTED, Heap, Traffic, read_traffic

KEPT_PART = 1 / 12  # of a stretch: 5 s of a minute
SPARK_WIDTH, SPARK_HEIGHT = 80, 20


@dataclass(frozen=True, slots=True)
class PictureRange:
    """How far back a picture goes. `per`: of which time each number is; `each`: the word for one stretch."""

    title: str
    width_s: int
    stretches: int
    per: str
    each: str

    @property
    def width_us(self) -> int:
        """The length of a stretch."""
        return self.width_s * 1_000_000


RANGES: Mapping[str, PictureRange] = MappingProxyType(
    {
        "1h": PictureRange("1 h", 60, 60, "a minute", "minute"),
        "24h": PictureRange("24 h", 900, 96, "in 15 minutes", "15 minutes"),
        "7d": PictureRange("7 days", 7_200, 84, "in 2 hours", "2 hours"),
    }
)


def range_of(name: str) -> PictureRange:
    """The range that an address asks for.

    Raises:
        InvalidInput: there is none of this name.
    """
    if name not in RANGES:
        raise InvalidInput(
            f"the range is {ascii(name)[:40]}", f"it is one of {', '.join(RANGES)}", "correct the address"
        )
    return RANGES[name]


@dataclass(frozen=True, slots=True)
class Point:
    """One stretch. `exact`: all of its jobs were looked at; else the counts are estimated. No latency, no job ended."""

    began_us: int
    succeeded: int = 0
    failed: int = 0
    submitted: int = 0
    p50_s: float | None = None
    p95_s: float | None = None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class PictureLine:
    """The points of a picture, the oldest first."""

    points: Sequence[Point]

    @property
    def latest(self) -> Point:
        """The last stretch that is over; it is what is told in words."""
        return self.points[-2] if len(self.points) > 1 else self.points[-1]

    @property
    def exact(self) -> bool:
        """Whether no number of it is estimated."""
        return all(each.exact for each in self.points)

    @property
    def succeeded(self) -> int:
        """In all stretches."""
        return sum(each.succeeded for each in self.points)

    @property
    def failed(self) -> int:
        """In all stretches."""
        return sum(each.failed for each in self.points)

    @property
    def submitted(self) -> int:
        """In all stretches."""
        return sum(each.submitted for each in self.points)

    @property
    def p95_s(self) -> float | None:
        """The middle of the stretches' own."""
        return _rank([each.p95_s for each in self.points if each.p95_s is not None], 0.5)

    @property
    def p50_s(self) -> float | None:
        """The middle of the stretches' own."""
        return _rank([each.p50_s for each in self.points if each.p50_s is not None], 0.5)

    @property
    def is_empty(self) -> bool:
        """Whether nothing came and nothing ended."""
        return not any(each.succeeded or each.failed or each.submitted for each in self.points)

    @property
    def spark(self) -> str:
        """The path of a small picture of what ended, 80 wide and 20 high."""
        ended = [each.succeeded + each.failed for each in self.points]
        most, step = max(*ended, 1), SPARK_WIDTH / max(len(ended) - 1, 1)
        places = (
            f"{place * step:.4g} {SPARK_HEIGHT - 1 - (SPARK_HEIGHT - 2) * each / most:.4g}"
            for place, each in enumerate(ended)
        )
        return "M" + "L".join(places)


def flow_of(traffic: Traffic, queue: str | None = None) -> PictureLine:
    """The points of all queues, or of one."""
    first_us = (traffic.now_us // traffic.width_us - traffic.stretches + 1) * traffic.width_us
    by_start: dict[int, list[Heap]] = {}
    for heap in traffic.heaps:
        by_start.setdefault(heap.began_us, []).append(heap)
    starts = range(first_us, first_us + traffic.stretches * traffic.width_us, traffic.width_us)
    return PictureLine([_point(began_us, by_start.get(began_us, ()), traffic, queue) for began_us in starts])


def queues_of(traffic: Traffic) -> set[str]:
    """Those of which it tells."""
    return {name for heap in traffic.heaps for name in heap.jobs}


def _point(began_us: int, heaps: Sequence[Heap], traffic: Traffic, queue: str | None) -> Point:
    counts: dict[str, int] = {}
    took: list[int] = []
    exact = True
    over_us = min(began_us + traffic.width_us, traffic.now_us)
    for heap in heaps:
        mine = sum(heap.jobs.values()) if queue is None else heap.jobs.get(queue, 0)
        is_whole = sum(heap.jobs.values()) < LOOKED_AT_MAX
        exact = exact and (is_whole or not mine)
        counts[heap.kind] = mine if is_whole else _estimate(mine, heap, over_us, began_us)
        took += _took(heap, queue)
    seconds = [each / 1000 for each in took]
    return Point(
        began_us,
        counts.get("succeeded", 0),
        counts.get("failed", 0),
        sum(counts.get(each, 0) for each in SUBMITTED),
        _rank(seconds, 0.5),
        _rank(seconds, 0.95),
        exact,
    )


def _took(heap: Heap, queue: str | None) -> list[int]:
    if queue is not None:
        return heap.took_ms.get(queue, [])
    return [each for of_queue in heap.took_ms.values() for each in of_queue]


def _estimate(seen: int, heap: Heap, over_us: int, began_us: int) -> int:
    """As if the whole stretch had gone as the part of it that was looked at."""
    looked_us = max(over_us - heap.first_us, 1)
    return max(seen, round(seen * (over_us - began_us) / looked_us))


def _rank(values: Sequence[float], share: float) -> float | None:
    """The value below which this share of all lies; None of none."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


class KeptPictures:
    """What was read lately, for all pages of a process: a picture need not be of this second.

    For one event loop.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, Traffic]] = {}

    async def traffic(self, client: Client, name: str) -> tuple[Traffic, int | None]:
        """What came and ended over a range, and the database's clock if it was asked just now.

        Raises:
            InvalidInput: there is no range of this name.
        """
        wanted = range_of(name)
        read_s, kept = self._found.get(name, (0.0, None))
        if kept is not None and time.monotonic() - read_s < KEPT_PART * wanted.width_s:
            return kept, None
        found = await client.arun(ask(read_traffic(wanted.width_us, wanted.stretches)))
        self._found[name] = (time.monotonic(), found)
        return found, found.now_us
