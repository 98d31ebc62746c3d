"""How much is measured: enough for a number one can quote, or just enough to see that everything runs."""

from __future__ import annotations

from dataclasses import dataclass

SLOTS = 100


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts and seconds of one run; every load is bounded by them."""

    drain_jobs: int
    drain_rounds: int
    submits_single: int
    submits_concurrent: int
    submits_bulk: int
    latencies: int
    claims: int
    backlog_jobs: int
    finished_jobs: int
    tomorrow_jobs: int
    snapshot_jobs: int
    idle_s: float
    settle_s: float
    in_flight: int


FULL = Sizes(
    drain_jobs=50_000,
    drain_rounds=3,
    submits_single=1_000,
    submits_concurrent=20_000,
    submits_bulk=50_000,
    latencies=400,
    claims=60,
    backlog_jobs=1_000_000,
    finished_jobs=1_000_000,
    tomorrow_jobs=1_000_000,
    snapshot_jobs=200_000,
    idle_s=30.0,
    settle_s=6.0,
    in_flight=1_000,
)
QUICK = Sizes(
    drain_jobs=2_000,
    drain_rounds=1,
    submits_single=50,
    submits_concurrent=1_000,
    submits_bulk=2_000,
    latencies=30,
    claims=10,
    backlog_jobs=5_000,
    finished_jobs=5_000,
    tomorrow_jobs=5_000,
    snapshot_jobs=3_000,
    idle_s=1.0,
    settle_s=0.5,
    in_flight=200,
)
