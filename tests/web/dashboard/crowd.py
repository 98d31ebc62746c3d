"""A database as one finds it on a busy afternoon: many jobs of several queues that came and ended within a day."""

from __future__ import annotations

import json
import math
import random
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOURS = 26
WRITTEN_A_SECOND = 5_000  # so that the newest are new when all are written
COLUMNS = (
    "id", "queue", "name", "state", "run_at", "attempt", "failures", "attempts_max", "crashes_max", "snoozes_max",
    "claimed_at", "submitted_at", "ended_at", "args_bytes", "args", "result", "error",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One sort of job: its part of all, how long it takes in the middle, and what it fails by."""

    queue: str
    name: str
    part: float
    took_s: float
    error: tuple[str, str]


KINDS = (
    Kind("extract", "extract_pages", 0.40, 1.9, ("PdfReadError", "EOF marker not found")),
    Kind("webhooks", "deliver_webhook", 0.27, 0.3, ("Gone", "410 from hooks.orchard.example")),
    Kind("default", "resize_image", 0.15, 0.2, ("OSError", "image file is truncated")),
    Kind("mail", "send_mail", 0.14, 3.2, ("SMTPServerDisconnected", "Connection unexpectedly closed")),
    Kind("reports", "monthly_report", 0.04, 24.0, ("ReportError", "the period is still open")),
)


def crowd(path: Path, *, finished: int, queued: int, seed: int = 7) -> None:
    """Put so many jobs into a migrated SQLite file, until about when they are written. A seed makes the same jobs."""
    chance, now_us = random.Random(seed), time.time_ns() // 1000 + 1_000_000 * (finished // WRITTEN_A_SECOND)
    marks = ", ".join("?" * len(COLUMNS))
    with sqlite3.connect(path) as connection:
        for table, jobs in (
            ("fencerow_finished_jobs", _finished(finished, chance, now_us)),
            ("fencerow_jobs", _queued(queued, chance, now_us)),
        ):
            connection.executemany(f"INSERT INTO {table} ({', '.join(COLUMNS)}) VALUES ({marks})", jobs)
    connection.close()


def _finished(count: int, chance: random.Random, now_us: int) -> Iterator[tuple[object, ...]]:
    for _ in range(count):
        kind = chance.choices(KINDS, [each.part for each in KINDS])[0]
        age_s = _age(chance)
        hard = math.exp(-(((age_s - 1_700) / 300) ** 2))  # an outage, half an hour ago
        took_s = kind.took_s * chance.lognormvariate(0, 0.8) * (1 + 6 * hard)
        ended_us = now_us - int(age_s * 1e6)
        failed = chance.random() < 0.012 + (0.35 * hard if kind.queue == "mail" else 0)
        yield _row(kind, ended_us - int(took_s * 1e6), ended_us, chance, failed=failed)


def _age(chance: random.Random) -> float:
    """How long ago one ended, in seconds: more by day than by night."""
    while True:
        age_s = HOURS * 3600 * chance.random()
        if chance.random() < 0.65 + 0.35 * math.cos(age_s / 86_400 * math.tau):
            return age_s


def _row(
    kind: Kind, due_us: int, ended_us: int, chance: random.Random, *, failed: bool
) -> tuple[object, ...]:
    args = json.dumps({"path": f"s3://inbox/{chance.randrange(10**6):06}.pdf", "tenant": "acme"})
    error = {"type": kind.error[0], "message": kind.error[1], "traceback": None}
    claimed_us = due_us + (ended_us - due_us) // 3
    return (
        _id(due_us, chance), kind.queue, kind.name, "failed" if failed else "succeeded", due_us, 3 if failed else 1,
        3 if failed else 0, 3, 3, 1000, claimed_us, due_us, ended_us, len(args), args,
        None if failed else '{"pages": 3}', json.dumps(error) if failed else None,
    )  # fmt: skip


def _queued(count: int, chance: random.Random, now_us: int) -> Iterator[tuple[object, ...]]:
    """Most of them in the queue that is to be paused."""
    for _ in range(count):
        is_ocr = chance.random() < 0.8
        kind = Kind("ocr", "read_scan", 0, 0, ("", "")) if is_ocr else chance.choice(KINDS)
        due_us = now_us - int(chance.random() * (2_800 if is_ocr else 9) * 1e6)
        args = json.dumps({"path": f"s3://scans/{chance.randrange(10**6):06}.tif", "tenant": "acme"})
        yield (
            _id(due_us, chance), kind.queue, kind.name, "queued", due_us, 0, 0, 3, 3, 1000, None, due_us, None,
            len(args), args, None, None,
        )  # fmt: skip


def _id(us: int, chance: random.Random) -> str:
    digits = f"{us // 1000:012x}7{chance.getrandbits(12):03x}8{chance.getrandbits(60):015x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
