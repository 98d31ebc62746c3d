"""What came and what ended lately, by stretches of time: a bounded look at the jobs that the database keeps."""

from __future__ import annotations

import msgspec

from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation

SUBMITTED = ("live", "ended")
LOOKED_AT_MAX = 100  # jobs of each stretch and kind; where there are more, how many there were is estimated


class Heap(msgspec.Struct, frozen=True):
    """Jobs of one kind in one stretch, the newest at most `LOOKED_AT_MAX`.

    `kind`: succeeded, failed, or submitted and now `live` or `ended`. `first_us`: the earliest instant among those that
    were looked at. `jobs`: how many of them by queue. `took_ms`: how long each took from when it was due to its end, by
    queue; none where it is told of submits.
    """

    began_us: int
    kind: str
    first_us: int
    jobs: dict[str, int]
    took_ms: dict[str, list[int]]


class Traffic(msgspec.Struct, frozen=True):
    """All heaps of the latest stretches, each `width_us` long; the last one is not over yet."""

    now_us: int
    width_us: int
    stretches: int
    heaps: list[Heap]


@operation(alone=True, repeatable=True, writes="")
def read_traffic(width_us: int, stretches: int) -> Steps[Traffic]:
    """The latest so many stretches. It tells the database's clock, too."""
    rows = yield from execute("read_traffic", width_us=width_us, stretches=stretches, limit=LOOKED_AT_MAX)
    heaps = [
        _heap(as_int(row[0]), str(row[1]), first_us, str(row[3]))
        for row in rows
        if (first_us := as_int_or_none(row[2])) is not None
    ]
    return Traffic(as_int(rows[-1][4]), width_us, stretches, heaps)


def _heap(began_us: int, kind: str, first_us: int, by_queue: str) -> Heap:
    found = msgspec.json.decode(by_queue, type=dict[str, list[int]])
    if kind in SUBMITTED:
        return Heap(began_us, kind, first_us, {name: counts[0] for name, counts in found.items()}, {})
    took_ms = {name: [max(each, 0) for each in took] for name, took in found.items()}
    return Heap(began_us, kind, first_us, {name: len(took) for name, took in took_ms.items()}, took_ms)
