"""Workers whose processes run out of file descriptors, were short of something a while ago, or asked for too much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencerow.core.finding import Finding, warn
from fencerow.core.model.wanted import Descriptors
from fencerow.core.model.worker import WorkerRecord

FULL_PART = 0.8  # of the limit: what is opened together by a few jobs then still finds room
SHOWN_MAX = 5
MORE = "raise its limit (`ulimit -n`, LimitNOFILE= of systemd), or give it fewer slots or connections"


def examine_descriptors(alive: Sequence[WorkerRecord]) -> Iterator[Finding]:
    """What workers stated of themselves: how many are open, fullest first, and what they lacked."""
    said = [
        (each, each.stated.descriptors)
        for each in alive
        if each.stated is not None and each.stated.descriptors
    ]
    full = [pair for pair in said if _part(pair[1]) >= FULL_PART]
    for worker, descriptors in sorted(full, key=lambda pair: _part(pair[1]), reverse=True)[:SHOWN_MAX]:
        yield warn(
            "descriptors",
            f"worker {worker.name} has {descriptors.open} of at most {descriptors.limit} file descriptors open",
            f"{MORE}; if the number only grows, a handler there keeps files or sockets open",
        )
    short = [
        (each, each.stated.shortage) for each in alive if each.stated is not None and each.stated.shortage
    ]
    for worker, shortage in short[:SHOWN_MAX]:
        yield warn(
            "shortage",
            f"worker {worker.name} was short of descriptors, threads or memory within ten minutes: {shortage}",
            f"it waits for one lease and then ends (FR-604); {MORE}",
        )
    large = [(each, each.stated.too_large) for each in alive if each.stated and each.stated.too_large]
    for worker, too_large in large[:SHOWN_MAX]:
        yield warn(
            "too much at once",
            f"worker {worker.name} does less at once since a failure within ten minutes: {too_large}",
            "make room on the database's disk (FR-506), or give the server more memory or time for a statement",
        )


def _part(descriptors: Descriptors) -> float:
    return descriptors.open / max(1, descriptors.limit)
