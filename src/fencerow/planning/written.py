"""A plan as people write it: the tables and fields of its file, and nothing else. What they mean: `reading.py`."""

from __future__ import annotations

import msgspec

Number = int | float | str


class WrittenKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[keys.NAME]`: exclusive keys, one for each of so many entities."""

    entities: int
    at_once: int = 1


class WrittenJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[jobs.NAME]`: how often (one of `rate`, `interval_s`, `cron` and `arrivals`), and how long one takes."""

    queue: str = "default"
    key: str | None = None
    limits: list[str] = []
    rate: Number | None = None
    per: str | None = None
    interval_s: Number | None = None
    cron: str | None = None
    tz: str | None = None
    spread: bool | None = None
    phase_s: Number | None = None
    jitter_s: Number | None = None
    arrivals: str | None = None
    duration_s: float | None = None
    mean_s: float | None = None
    p95_s: float | None = None
    failure_share: float = 0.0
    attempts_max: int = 3
    misfire: str | None = None
    late_s: Number | None = None
    catchup_max: int | None = None
    overlap: str | None = None


class WrittenLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits.NAME]`: as `fencerow limits set` has them. `values`: how many keys one per key has, or the name of the
    exclusive key whose entities they are; the limit's own name, if nothing is said."""

    at_once: int | None = None
    rate: str | None = None
    burst: int = 1
    strict: bool = False
    per_key: bool = False
    values: int | str | None = None


class WrittenWorkers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workers]`: `slots` for all queues of a process together, or `[workers.queues]` with slots for each."""

    processes: int = 1
    slots: int | None = None
    queues: dict[str, int] = {}


class WrittenOutage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[outage]`: no worker runs for so long."""

    lasts_s: float
    starts_s: float = 0.0
    drained_within_s: float | None = None


class WrittenPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    jobs: dict[str, WrittenJob] = {}
    keys: dict[str, WrittenKeys] = {}
    limits: dict[str, WrittenLimit] = {}
    workers: WrittenWorkers = WrittenWorkers()
    outage: WrittenOutage | None = None
    horizon_s: float = 86_400.0
