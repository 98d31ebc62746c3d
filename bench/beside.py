"""What the scripts of this folder share that measure a thing beside the plain one: how they run, time and tell it."""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fencerow.bench.place import BenchDatabase, private_place

PLAIN = "plain"


def on_each_engine(measure: Callable[[BenchDatabase, int], Iterable[str]], default: int) -> None:
    """Print what `measure` tells of each engine, or of those named behind the first argument, which is its number."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else default
    print(f"{platform.machine()}, Python {platform.python_version()}", flush=True)
    for kind in sys.argv[2:] or ("postgres", "sqlite"):
        with private_place(kind) as place:
            for line in measure(place, number):
                print(f"{kind}, {line}", flush=True)


def timed_us(calls: Sequence[Callable[[], object]], each: int) -> float:
    """The median of the calls, in microseconds for each of the things that one call does."""
    took = []
    for call in calls:
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return statistics.median(took) / each * 1e6


def told(what: str, found: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """The median of the rounds of each, and of each round's ratio to its plain ones."""
    for name, took in found.items():
        ratio = statistics.median(mine / plain for mine, plain in zip(took, found[PLAIN], strict=True))
        yield f"{what}, {name}: {statistics.median(took):,.1f} us, {ratio:.2f} x"
