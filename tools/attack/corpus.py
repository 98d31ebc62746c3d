"""The whole corpus against one engine, and what came of it as evidence."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections.abc import Iterable
from typing import Any

from tools.attack.case import Case
from tools.attack.cases import corpus
from tools.attack.described import Document
from tools.attack.place import Place, under_attack
from tools.attack.playing import Outcome, described, play, told_apart
from tools.attack.raw import wires

MEMORY_MIB_MAX = 200


def attacked(engine: str, limit_s: float, seed: int) -> dict[str, Any]:
    """Play it in an order of chance until it is over or the time is, and tell what came of it."""
    with under_attack(engine) as place:
        before, rested, began = place.kept(), place.memory_mib(), time.monotonic()
        outcome, size = asyncio.run(_shuffled(place, began + limit_s, seed))
        changed = sorted(name for name, rows in place.kept().items() if rows != before[name])
        return {
            "seconds": round(time.monotonic() - began, 1),
            "load": [round(each, 1) for each in os.getloadavg()],
            "requests_in_the_corpus": size,
            "memory_mib_at_rest": round(rested, 1),
            **told(place, outcome, changed),
            "tables": {name: rows for name, (rows, _) in sorted(before.items())},
        }


async def _shuffled(place: Place, until: float, seed: int) -> tuple[Outcome, int]:
    document = await described(place)
    cases = [*wires(place.tokens["all"]), *corpus(document, place.jobs)]
    random.Random(seed).shuffle(cases)
    in_time = itertools.takewhile(lambda _: time.monotonic() < until, cases)
    return await _played(place, document, in_time), len(cases)


async def part(place: Place, every: int, offset: int) -> Outcome:
    """Play each so-many-th case of each so-many-th operation."""
    document = await described(place)
    cases = itertools.chain(wires(place.tokens["all"]), corpus(document, place.jobs, offset, every))
    return await _played(place, document, itertools.islice(cases, offset, None, every))


async def _played(place: Place, document: Document, cases: Iterable[Case]) -> Outcome:
    outcome = await play(place, document, cases)
    outcome.faults += [f"a job of others is told apart: {each}" for each in await told_apart(place, document)]
    return outcome


def told(place: Place, outcome: Outcome, changed: list[str]) -> dict[str, Any]:
    """The verdict, and what it rests on."""
    served = sorted(outcome.served_ms)
    most, tracebacks = place.memory_mib("VmHWM"), place.tracebacks()
    return {
        "stands": not (outcome.faults or changed or tracebacks) and most < MEMORY_MIB_MAX,
        "requests": outcome.requests.total(),
        "by_kind": dict(sorted(outcome.requests.items())),
        "by_status": {str(status): count for status, count in sorted(outcome.statuses.items())},
        "memory_mib_at_most": round(most, 1),
        "good_requests_beside": len(served),
        "good_request_ms": {"median": round(served[len(served) // 2], 1), "max": round(served[-1], 1)},
        "tracebacks_in_the_log": tracebacks,
        "tables_changed": changed,
        "faults": outcome.faults,
    }
