"""What came and what ended lately, by stretches of time: a bounded look at the jobs that the database keeps."""

from __future__ import annotations

import msgspec

from fencerow.core.db.run import Steps, as_int, as_int_or_none, execute, operation

LOOKED_AT_MAX = 100  # jobs of each stretch and kind; where there are more, how many there were is estimated


class Heap(msgspec.Struct, frozen=True):
    """Jobs of one kind in one stretch, the newest at most `LOOKED_AT_MAX`.

    `kind`: succeeded, failed, or submitted and now `live` or `ended`. `first_us`: the earliest instant among those that
    were looked at. `took_ms`: by queue, how long each took from when it was due to its end; zeros where it is told of
    submits.
    """

    began_us: int
    kind: str
    first_us: int
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
        Heap(
            as_int(row[0]), str(row[1]), first_us, msgspec.json.decode(str(row[3]), type=dict[str, list[int]])
        )
        for row in rows
        if (first_us := as_int_or_none(row[2])) is not None
    ]
    return Traffic(as_int(rows[-1][4]), width_us, stretches, heaps)
