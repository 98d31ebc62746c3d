"""I9 recovery within its bound: what the dead held is taken back once its lease is over and somebody looks.

The bound counts only while a living worker reached the database: one whose renewals were answered without
a gap for a whole lease may judge others, and sweeps every `sweep_s`. An outage of all of them stops the count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fencerow_proof.history.acts import NEVER, Act
from fencerow_proof.history.checks.leases import Registration, Workers
from fencerow_proof.history.lives import Attempt, Life
from fencerow_proof.history.report import Report

SWEEP_S = 15.0  # the default setting
GAP_OF_LEASE = 0.5  # renewals further apart than this share of the lease are a gap


@dataclass(frozen=True, slots=True)
class Watch:
    """The times during which somebody could judge the dead, how long that may take, and when the run ended."""

    spans: list[tuple[int, int]]
    bound_us: int
    end_us: int


def watch_of(workers: Workers, end_us: int, *, sweep_s: float, slack_s: float) -> Watch:
    """When the workers of a run were able to find the dead."""
    spans: list[tuple[int, int]] = []
    for found in workers.by_holder.values():
        spans += _judging(found)
    return Watch(_joined(spans), round((sweep_s + slack_s) * 1e6), end_us)


def check_liveness(report: Report, life: Life, workers: Workers, watch: Watch) -> None:
    """Every attempt of one job whose holder fell silent before it ended."""
    for attempt in life.attempts.values():
        orphaned = _orphaned(attempt, workers, watch)
        if orphaned is not None:
            report.looked["I9"] += 1
            _in_time(report, life, attempt, orphaned, watch)


def _orphaned(attempt: Attempt, workers: Workers, watch: Watch) -> tuple[int, int] | None:
    """From the end of the holder's lease until the attempt was over, if it was left behind."""
    holder = attempt.holder
    found = workers.by_holder.get(holder) if holder is not None else None
    if found is None or found.lease_s is None or not found.renewals:
        return None
    if any(act.verb != "reclaim" for act in attempt.endings) or attempt.maybe_ended:
        return None
    expired_us = max(act.end_us for act in found.renewals) + round(found.lease_s * 1e6)
    taken_us = min((act.end_us for act in attempt.endings), default=watch.end_us)
    return (expired_us, taken_us) if taken_us > expired_us else None


def _in_time(report: Report, life: Life, attempt: Attempt, orphaned: tuple[int, int], watch: Watch) -> None:
    start_us, end_us = orphaned
    longest_us = max((min(end_us, high) - max(start_us, low) for low, high in watch.spans), default=0)
    if longest_us > watch.bound_us:
        what = (
            f"attempt {attempt.number} was left for {longest_us / 1e6:.1f} s after its holder's lease, "
            f"with workers that could look; the bound is {watch.bound_us / 1e6:.1f} s"
        )
        report.add("I9", what, life.job, [*attempt.claims, *attempt.endings])


def _judging(found: Registration) -> list[tuple[int, int]]:
    """The spans in which this worker's renewals had gone well for a whole lease."""
    if found.lease_s is None:
        return []
    lease_us = round(found.lease_s * 1e6)
    return [
        (low + lease_us, high)
        for low, high in _gapless(found.renewals, round(lease_us * GAP_OF_LEASE))
        if high > low + lease_us
    ]


def _gapless(renewals: Iterable[Act], gap_us: int) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for act in sorted((act for act in renewals if act.end_us < NEVER), key=lambda each: each.end_us):
        if runs and act.end_us - runs[-1][1] <= gap_us:
            runs[-1] = (runs[-1][0], act.end_us)
        else:
            runs.append((act.end_us, act.end_us))
    return runs


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined
