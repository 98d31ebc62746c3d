"""Hundreds of callers that keep a gateway waiting, beside good ones: how these fare, and whether it still stops."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from tools.attack.corpus import MEMORY_MIB_MAX
from tools.attack.good_callers import Served, served, together
from tools.attack.place import Place, under_attack
from tools.attack.slow_callers import KINDS

SLOW = 500
# The p99 of a few hundred requests is the luck of the machine: without slow callers it differed by three from round to
# round. So there are more of them, and each round has a base of its own.
ROUNDS = 4
WARM_S, ROUND_S = 1.0, 7.0
RATIO_MAX = 3.0
AS_SHIPPED = {"FENCEROW_WEB_RATE_PER_SECOND": "100"}  # other attacks ask without a bound on the rate
STOP_S_MAX = 45.0  # `web_drain_s` is 30, and a loaded machine is given some more


def slowed(engine: str, _limit_s: float, _seed: int) -> dict[str, Any]:
    """Serve alone and beside slow callers in turns; the last time it is told to stop while they are there."""
    with under_attack(engine, env=AS_SHIPPED) as place:
        rested, jobs = place.memory_mib(), _jobs(place)
        alone, beside, tallies = [], [], []
        warm = asyncio.run(served(place, WARM_S))
        for _ in range(ROUNDS):
            alone.append(asyncio.run(served(place, ROUND_S)))
            with slow_callers(place, SLOW) as slow:
                beside.append(asyncio.run(served(place, ROUND_S)))
            tallies.append(slow.tally)
        kept = _jobs(place) - jobs - warm.stored
        found = _told(place, alone, beside)
        with slow_callers(place, SLOW):
            stopped_s, status = _stopped(place)
        found |= {
            "slow_callers": SLOW,
            "what_became_of_them": tallies,
            "jobs_stored": kept,
            "memory_mib_at_rest": round(rested, 1),
            "stopped_s": stopped_s,
            "exit_status": status,
            "log": place.log.read_text("utf-8", "replace").splitlines()[-80:],
        }
    return {"stands": judged(found), **found}


def _told(place: Place, alone: list[Served], beside: list[Served]) -> dict[str, Any]:
    ratios = [with_slow.at(0.99) / base.at(0.99) for base, with_slow in zip(alone, beside, strict=True)]
    tails = sorted(each.at(0.99) for each in alone)
    return {
        "load": [round(each, 1) for each in os.getloadavg()],
        "alone": [each.told() for each in alone],
        "beside_slow_callers": [each.told() for each in beside],
        "p99_beside_by_alone": round(median(ratios), 2),
        "of_each_round": [round(each, 2) for each in ratios],
        "of_all_requests": round(together(beside).at(0.99) / together(alone).at(0.99), 2),
        "alone_by_alone_at_most": round(tails[-1] / tails[0], 2),
        "refused": sum(len(each.refused) for each in beside),
        "answered_202": sum(each.stored for each in alone + beside),
        "tracebacks_in_the_log": place.tracebacks(),
        "memory_mib_at_most": round(place.memory_mib("VmHWM"), 1),
    }


def judged(found: dict[str, Any]) -> bool:
    """Whether it stands. What differs as much without slow callers, from round to round, is not put down to them."""
    return bool(
        found["p99_beside_by_alone"] < max(RATIO_MAX, found["alone_by_alone_at_most"])
        and not found["refused"]
        and found["answered_202"] == found["jobs_stored"]
        and found["memory_mib_at_most"] < MEMORY_MIB_MAX
        and found["stopped_s"] < STOP_S_MAX
        and found["exit_status"] == 0
        and not found["tracebacks_in_the_log"]
    )


def _jobs(place: Place) -> int:
    return next(rows for name, (rows, _) in place.kept().items() if name in ("jobs", "fencerow_jobs"))


def _stopped(place: Place) -> tuple[float, int]:
    """How many seconds it takes to leave, and with which status."""
    assert place.process is not None
    began = time.monotonic()
    place.process.terminate()
    try:
        status = place.process.wait(4 * STOP_S_MAX)
    except subprocess.TimeoutExpired:
        place.process.kill()
        status = place.process.wait()
    return round(time.monotonic() - began, 1), status


class Slow:
    """Slow callers in a process of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.tally: dict[str, int] = {}

    def end(self) -> None:
        """Let them go; `tally` tells what became of them."""
        said, _ = self._process.communicate()
        self.tally = json.loads(said)


@contextmanager
def slow_callers(place: Place, count: int) -> Iterator[Slow]:
    """So many of them, as long as this lasts; all have begun when it does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.attack.slow_callers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    orders = {
        "port": place.port,
        "submits": place.tokens["submit"],
        "reads": place.tokens["operate"],
        "job_id": place.jobs["own"],
        "each": -(-count // len(KINDS)),
    }
    process.stdin.write(json.dumps(orders) + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    slow = Slow(process)
    try:
        yield slow
    finally:
        slow.end()
