"""The questions in their order, on each database in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from fencerow.bench import drain, growth, latency, rest, submit
from fencerow.bench.figure import Figure
from fencerow.bench.place import BenchDatabase
from fencerow.bench.sizes import Sizes

QUESTIONS: dict[str, Callable[[BenchDatabase, Sizes], Iterator[Figure]]] = {
    "drain": drain.measure,
    "submit": submit.measure,
    "latency": latency.measure,
    "growth": growth.measure,
    "idle": rest.measure,
}


def run(
    places: Sequence[AbstractContextManager[BenchDatabase]], sizes: Sizes, questions: Sequence[str]
) -> Iterator[tuple[BenchDatabase, Figure]]:
    """Measure; each figure comes as soon as it is known."""
    for opening in places:
        with opening as place:
            for question in questions:
                for figure in QUESTIONS[question](place, sizes):
                    yield place, figure
