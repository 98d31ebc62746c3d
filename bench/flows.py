"""What do flows cost beside the same jobs without edges?

    python bench/flows.py [rounds] [postgres|sqlite]

One worker in one process, on one database in one run. Each round works off plain jobs, then a fan-out of as many with
one job before and one behind it; then a chain of ten, and ten jobs that each submit the next as a follow-up. Told is
the median of the rounds, and the median of each round's ratio.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator

from beside import on_each_engine

from fencerow import App, Job
from fencerow.bench.place import BenchDatabase
from fencerow.operators import looking

ROUNDS = 5
PARTS, LINKS, SLOTS = 1_000, 10, 20
WAIT_S, LOOK_S = 600.0, 0.01


class Work:
    """An app whose jobs do nothing, and a worker that runs them."""

    def __init__(self, place: BenchDatabase) -> None:
        self.app = App(config=place.config)

        @self.app.job
        async def part(number: int) -> int:
            return number

        @self.app.job
        async def follow(job: Job, left: int) -> str:
            return job.submit_next(follow.call(left - 1)) if left else ""

        self.part, self.follow = part, follow

    async def plain(self) -> None:
        """As many jobs, submitted in one call."""
        await self.app.asubmit_many([self.part.call(number) for number in range(PARTS)])
        await self.over()

    async def fan_out(self) -> None:
        """The same between two others."""
        flow = self.app.flow("fan-out")
        first = flow.add("first", self.part.call(0))
        parts = [flow.add(f"part {at}", self.part.call(at), needs=[first]) for at in range(PARTS)]
        flow.add("join", self.part.call(0), needs=parts)
        await flow.asubmit()
        await self.over()

    async def chain(self) -> None:
        """Ten, each behind the one before."""
        flow = self.app.flow("chain")
        flow.chain(*((f"link {at}", self.part.call(at)) for at in range(LINKS)))
        await flow.asubmit()
        await self.over()

    async def follow_ups(self) -> None:
        """Ten, each submitted with the success of the one before."""
        await self.follow.asubmit(LINKS - 1)
        await self.over()

    async def over(self) -> None:
        """Wait until no job is left, in the same way for all."""
        async with asyncio.timeout(WAIT_S):
            while await self.app.engine.arun(looking.counts()):  # noqa: ASYNC110 - a look that tells nobody
                await asyncio.sleep(LOOK_S)


async def timed_s(call: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


async def measured(work: Work, rounds: int) -> dict[str, list[float]]:
    """Seconds of each, round by round."""
    ways = (work.plain, work.fan_out, work.follow_ups, work.chain)
    found: dict[str, list[float]] = {way.__name__: [] for way in ways}
    async with work.app, work.app.worker(slots=SLOTS):
        await work.follow_ups()  # so that no round pays for what is loaded late
        for _ in range(rounds):
            for way in ways:
                found[way.__name__].append(await timed_s(way))
    return found


def measure(place: BenchDatabase, rounds: int) -> Iterator[str]:
    found = asyncio.run(measured(Work(place), rounds))
    for name, beside, count in (("fan_out", "plain", PARTS + 2), ("chain", "follow_ups", LINKS)):
        ratio = statistics.median(
            mine / other for mine, other in zip(found[name], found[beside], strict=True)
        )
        took = statistics.median(found[name])
        yield f"{name.replace('_', '-')} of {count:,} jobs: {took:.3f} s, {ratio:.2f} x {beside.replace('_', '-')}"


if __name__ == "__main__":
    on_each_engine(measure, ROUNDS)
