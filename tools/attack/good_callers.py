"""Callers who ask for what is right while others do not: how long each waits for its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.attack.case import JSON, Case, encoded
from tools.attack.place import Place
from tools.attack.wire import Wire

CALLERS = 8
EACH_S = 0.1  # one request of each caller so often
FRESH = 5  # of so many requests one comes over a connection of its own


@dataclass
class Served:
    """How they fared."""

    ms: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stored: int = 0

    def told(self) -> dict[str, object]:
        """As evidence."""
        return {
            "requests": len(self.ms),
            "refused": self.refused[:20],
            "median_ms": round(self.at(0.5), 1),
            "p99_ms": round(self.at(0.99), 1),
            "max_ms": round(max(self.ms), 1),
        }

    def at(self, share: float) -> float:
        """The time within which this share of them was answered."""
        return sorted(self.ms)[int(share * (len(self.ms) - 1))]


def together(several: Sequence[Served]) -> Served:
    """All of their requests as if of one time."""
    return Served([ms for each in several for ms in each.ms])


async def served(place: Place, seconds: float) -> Served:
    """Let them ask for so long."""
    found, until = Served(), time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(CALLERS):
            group.create_task(_caller(place, found, until, number))
    return found


async def _caller(place: Place, found: Served, until: float, number: int) -> None:
    await asyncio.sleep(EACH_S * number / CALLERS)
    asked = 0
    async with Wire(place.port) as wire:
        while time.monotonic() < until:
            case = _submit(asked) if asked % 2 else _look(place)
            asked += 1
            began = time.perf_counter()
            try:
                answer = await wire.ask(case.written(place.tokens), alone=asked % FRESH == 0)
            except TimeoutError:
                found.refused.append(f"{case.method}: no answer in a minute")
                return
            found.ms.append((time.perf_counter() - began) * 1e3)
            if answer.status not in case.allowed:
                found.refused.append(f"{case.method}: {answer.status} {answer.body[:200]!r}")
            elif case.method == "POST":
                found.stored += 1
            await asyncio.sleep(max(0.0, EACH_S - (time.perf_counter() - began)))


def _look(place: Place) -> Case:
    return Case("served", "GET", f"/v1/jobs/{place.jobs['own']}", allowed=frozenset({200}))


def _submit(number: int) -> Case:
    body = encoded({"job": "pages", "args": {"path": f"{number}.pdf"}})
    return Case("served", "POST", "/v1/jobs", headers=[JSON], body=body, allowed=frozenset({202}))
