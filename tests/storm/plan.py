"""How big a storm is, and which faults it brings in which order: all of it from one seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEASE_S = 2.0
SWEEP_S = 0.4
# What a dead worker held is claimable again within lease and sweep. The sweep's pause is drawn up to a fifth
# longer, and the sweep itself, on a machine that is kept busy on purpose, takes its time.
RECOVERY_S = LEASE_S + SWEEP_S * 1.2 + 1.0

WORKER_SETTINGS: Mapping[str, Any] = {
    "lease_s": LEASE_S,
    "renew_s": 0.25,
    "sweep_s": SWEEP_S,
    "poll_max_s": 0.2,
    "cancel_raise_s": 0.2,
    "cancel_kill_s": 0.5,
    "shutdown_s": 3.0,
    "connect_timeout_s": 2.0,
    "pool_max": 5,
}
CLIENT_SETTINGS: Mapping[str, Any] = {"connect_timeout_s": 1.0, "pool_max": 5, "busy_timeout_s": 4.0}


@dataclass(frozen=True)
class Plan:
    """One storm on one engine. `faults` counts the confirmed ones; between the starts of two pass `gap_s` seconds."""

    jobs: int
    faults: int
    seed: int
    gap_s: float
    workers: int = 5
    clients: int = 3
    shares: Mapping[str, int] | None = None  # how often each kind of fault comes; None: as the engine says
    bug: str = ""  # which guard the workers' statements lack: see `bugs.py`
    disk_mib: int = 256


def deck(shares: Mapping[str, int], count: int, chance: random.Random) -> list[str]:
    """So many faults, each kind at least once and otherwise by its share, in a random order."""
    total = sum(shares.values())
    cards = [kind for kind, share in shares.items() for _ in range(max(1, round(count * share / total)))]
    chance.shuffle(cards)
    return cards
