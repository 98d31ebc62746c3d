"""What a storm came to, for people and as a file: figures that are quoted anywhere come from such a file only."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from fencerow.testing.pg_binaries import find_binaries
from tests.proof.storm.books import shown
from tests.proof.storm.plan import LEASE_S, RECOVERY_AFTER_TROUBLE_S, RECOVERY_S, SWEEP_S
from tests.proof.storm.storm import Report

ROOT = Path(__file__).parents[3]
SLOWEST = 5


def complaints(report: Report) -> list[str]:
    """What is wrong with a storm; nothing when all promises held and the faults did strike."""
    found = [*shown(report.books.wrong), *report.tally.errors]
    if report.confirmed < report.plan.faults:
        found.append(f"only {report.confirmed} of {report.plan.faults} faults were seen to strike")
    found += [f"no fault of this kind was seen to strike: {name}" for name in report.missing]
    return found


def facts(report: Report) -> dict[str, Any]:
    """One storm as plain data."""
    clear = [each for each in report.recoveries if not each.trouble]
    troubled = [each for each in report.recoveries if each.trouble]
    return {
        "engine": report.kind,
        "seed": report.plan.seed,
        "jobs": report.jobs,
        "faults_confirmed": report.confirmed,
        "faults": dict(sorted(report.tally.confirmed.items())),
        "faults_tried_and_not_seen": dict(sorted(report.tally.unseen.items())),
        "faults_left_out": report.left_out,
        "jobs_by_final_state": dict(sorted(report.books.outcomes.items())),
        "answers_to_clients": dict(sorted(report.books.answers.items())),
        "checked": dict(report.books.checked),
        "broken": {promise: len(found) for promise, found in report.books.wrong.items()},
        "recovery": {
            "lease_s": LEASE_S,
            "sweep_s": SWEEP_S,
            "measured": len(clear),
            "bound_s": round(RECOVERY_S, 2),
            "took_s": _spread([each.took_s for each in clear]),
            "measured_after_trouble": len(troubled),
            "bound_after_trouble_s": round(RECOVERY_AFTER_TROUBLE_S, 2),
            "took_after_trouble_s": _spread([each.took_s for each in troubled]),
            "late": sum(each.is_late for each in report.recoveries),
            "slowest": [
                {
                    "how": each.how,
                    "declared_dead_s": round(each.declared_s, 3),
                    "taken_s": round(each.took_s, 3),
                }
                for each in sorted(clear, key=lambda each: each.took_s)[: -SLOWEST - 1 : -1]
            ],
        },
        "workers_ended_with_a_blocked_loop": report.ended_blocked,
        "workers": report.plan.workers,
        "clients": report.plan.clients,
        "storm_s": round(report.storm_s, 1),
        "calm_s": round(report.calm_s, 1),
    }


def surroundings(kinds: Sequence[str]) -> dict[str, Any]:
    """Which code, when, and on what."""
    told: dict[str, Any] = {
        "commit": _git("rev-parse", "HEAD"),
        "changed_files": len(_git("status", "--porcelain").splitlines()),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "system": platform.platform(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        },
        "python": sys.version.split()[0],
        "psycopg": psycopg.__version__,
    }
    if "sqlite" in kinds:
        told["sqlite"] = sqlite3.sqlite_version
    if "postgres" in kinds:
        said = subprocess.run([find_binaries() / "postgres", "--version"], capture_output=True, text=True)
        told["postgres"] = said.stdout.strip()
    return told


def line(report: Report) -> str:
    """A storm in one line."""
    clear = [each.took_s for each in report.recoveries if not each.trouble]
    return (
        f"{report.kind}: {report.jobs} jobs, {report.confirmed} faults of {len(report.tally.confirmed)} kinds, "
        f"{dict(report.books.outcomes)}, {len(clear)} of {len(report.recoveries)} recoveries undisturbed, "
        f"the longest {max(clear, default=0):.2f} s, "
        f"storm {report.storm_s:.0f} s, calm {report.calm_s:.0f} s"
    )


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    return {
        "median": round(ordered[len(ordered) // 2], 3),
        "p95": round(ordered[int(len(ordered) * 0.95)], 3),
        "max": round(ordered[-1], 3),
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""
