"""How big a storm is, and which faults it brings in which order: all of it from one seed."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fencerow.limits import Breaker

LEASE_S = 2.0
SWEEP_S = 0.4
RENEW_S = 0.25
# What a dead worker held is claimable again within lease and sweep. The sweep's pause is drawn up to a fifth
# longer. The rest is room for a machine that is kept busy on purpose, and on SQLite for the turn at the one write lock;
# the evidence has the median and the p95 beside the bound. Late is who is beyond it by the clock and by what the worker
# that nothing strikes did meanwhile: see `pace.py`.
RECOVERY_S = LEASE_S + SWEEP_S * 1.2 + 2.5
# After trouble of everybody's it takes a connection, and a lease without a gap before anybody is declared dead.
RECOVERY_AFTER_TROUBLE_S = RECOVERY_S + 3.0

# The time limit of jobs that need far less: whatever stands still meanwhile, none of them may be ended for it. A stop
# and a blocked loop are shorter; an outage is longer than the deadline that the limit becomes in the database.
LIMIT_S = 2.5 * LEASE_S
WEDGE_LIMIT_S = 1.0
CHILD_START_S = 6.0
OUTAGE_S = LIMIT_S + LEASE_S + CHILD_START_S + 3.0
HOUR_S = 3600.0
# After the clock was an hour off, leases that were written meanwhile must be seen through before they count as over.
RECOVERY_AFTER_HOUR_S = RECOVERY_AFTER_TROUBLE_S + 4 * LEASE_S

STORE_S = 1.0  # how long anybody waits for the store of large payloads
STORE_BYTES_MIN = 1024
# What no job refers to is removed from this age on: longer than a submit waits between its put and its row.
STORE_ORPHAN_S = 20.0

# What may run at once under the limits of a storm; its keys say so themselves.
LIMITS: Mapping[str, int] = {"metered": 3, "queue:narrow": 3}
QUEUES: Mapping[str, int] = {
    "default": 8,
    "narrow": 2,
}  # of each worker: all of them together exceed that limit

PAUSED = "narrow"  # the queue that clients pause for a moment
FRAGILE = Breaker(2, within_s=1.0, stop_s=0.3)  # of the limit of this name

LABEL = "gpu"  # that every worker carries
ROUND = 120  # faults after which all kinds come again

# PostgreSQL takes the larger part of a storm: it has more that can break.
SHARE_OF = {"postgres": 0.6, "sqlite": 0.4}
GAP_S = {"postgres": 0.2, "sqlite": 0.3}
WORKERS = {"postgres": 5, "sqlite": 4}
CLIENTS = {"postgres": 3, "sqlite": 2}

STORE_SETTINGS: Mapping[str, Any] = {"outside_timeout_s": STORE_S, "outside_bytes_min": STORE_BYTES_MIN}
WORKER_SETTINGS: Mapping[str, Any] = {
    "lease_s": LEASE_S,
    "renew_s": RENEW_S,
    "sweep_s": SWEEP_S,
    "poll_max_s": 0.2,
    "cancel_raise_s": 0.2,
    "cancel_kill_s": 0.5,
    "shutdown_s": 3.0,
    "child_start_s": CHILD_START_S,
    "connect_timeout_s": 2.0,
    "pool_max": 5,
    "labels": LABEL,
    **STORE_SETTINGS,
}
CLIENT_SETTINGS: Mapping[str, Any] = {
    "connect_timeout_s": 1.0,
    "pool_max": 5,
    "busy_timeout_s": 4.0,
    **STORE_SETTINGS,
}


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
    mix: Mapping[str, int] | None = None  # what the clients submit; None: everything
    bug: str = ""  # which guard the workers' statements lack: see `bugs.py`
    disk_mib: int = 256
    to_the_end: bool = True  # whether all jobs have to end before the books are checked


CONTROL_SEEDS = 3  # storms in which workers without a guard must be found, at most
# For each bug (see `bugs.py`) the storm in which it shows: the jobs, and the fault.
CONTROLS: Mapping[str, Mapping[str, Any]] = {
    "nobody is fenced": {
        "jobs": 100,
        "gap_s": 0.5,
        "shares": {"worker stopped beyond its lease": 1},
        "mix": {"long": 1},
    },
    "no live job is seen": {
        "jobs": 200,
        "gap_s": 1.5,
        "shares": {"worker killed": 1},
        "mix": {"heavy": 2, "long": 1},
    },
    "nobody counts": {
        "jobs": 300,
        "gap_s": 1.5,
        "shares": {"worker killed": 1},
        "mix": {"turn": 2, "strict": 1, "pair": 1, "metered": 4, "narrow": 4, "slow": 1},
    },
}


def deck(
    shares: Mapping[str, int], strike_all: Collection[str], count: int, chance: random.Random
) -> list[str]:
    """So many faults, each kind at least once and otherwise by its share, in a random order.

    Those that strike the whole database come in the first half of each round: in the second half nothing excuses
    a worker that is slow to take over from a dead one.
    """
    drawn = chance.choices(list(shares), list(shares.values()), k=max(0, count - len(shares)))
    cards = [*shares, *drawn]
    chance.shuffle(cards)
    rounds = [cards[at : at + ROUND] for at in range(0, len(cards), ROUND)]
    return [card for each in rounds for card in _gathered(each, strike_all, chance)]


def _gathered(cards: list[str], strike_all: Collection[str], chance: random.Random) -> list[str]:
    wide = [card for card in cards if card in strike_all]
    narrow = [card for card in cards if card not in strike_all]
    first = wide + narrow[: max(0, len(cards) // 2 - len(wide))]
    chance.shuffle(first)
    return [*first, *narrow[max(0, len(cards) // 2 - len(wide)) :]]


def planned(kind: str, jobs: int, faults: int, seed: int, *, alone: bool = False) -> Plan:
    """The storm of one engine, where `jobs` and `faults` are those of both together unless it is `alone`."""
    of_both = 1.0 if alone else SHARE_OF[kind]
    mine_jobs, mine_faults = math.ceil(jobs * of_both), math.ceil(faults * of_both)
    return Plan(
        jobs=mine_jobs,
        faults=mine_faults,
        seed=seed,
        gap_s=GAP_S[kind],
        workers=WORKERS[kind],
        clients=CLIENTS[kind],
        # Room for what is written, and little more: a disk is filled by writing all the rest of it.
        disk_mib=(160 if kind == "postgres" else 16) + mine_jobs // 64,
    )


def control(kind: str, seed: int, bug: str) -> Plan:
    """A small storm over workers that lack a guard. It must be found wrong, or storms prove nothing."""
    return Plan(
        faults=4,
        seed=seed,
        workers=WORKERS[kind],
        clients=1,
        bug=bug,
        disk_mib=160,
        # What is wrong is written by then. What the stopped ones ran is suspect, and would go one by one for a minute.
        to_the_end=False,
        **CONTROLS[bug],
    )
