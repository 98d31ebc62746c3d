"""What must hold after a load, and what is measured of it."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.events.bus.load import Observed, query
from tests.events.bus.plan import Ground


@dataclass
class Verdict:
    """What is wrong, if anything; how much the plain reader lost; what was measured."""

    wrong: list[str] = field(default_factory=list)
    plain_lost: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


def judge(seen: Observed) -> Verdict:
    """Hold what was delivered against what was committed."""
    ground, found = Ground(seen.plan), Verdict()
    truth = {
        int(row[0]): (row[1], int(row[2]), int(row[3]), float(row[4]))
        for row in query(
            seen.plan, f"SELECT event_id, name, version, number, at FROM {ground.table('truth')}"
        )
    }
    effects = [
        (int(row[0]), row[1], int(row[2]), int(row[3]), float(row[4]))
        for row in query(
            seen.plan,
            f"SELECT event_id, name, version, number, at FROM {ground.table('effects')} ORDER BY id",
        )
    ]
    sent = sinks(Path(seen.plan.folder))
    found.wrong += [*seen.left, *completeness("ledger", truth, [row[0] for row in effects], once=True)]
    found.wrong += completeness("mail", truth, [row[0] for row in sent], once=False)
    found.wrong += order("ledger", effects)
    found.wrong += order("mail", first_of_each(sent))
    found.plain_lost = len(set(truth) - seen.plain)
    lag = sorted(row[4] - truth[row[0]][3] for row in effects if row[0] in truth)
    found.facts = {
        "events": len(truth),
        "rolled_back": seen.aborted,
        "drainers_killed": seen.killed,
        "effects": len(effects),
        "mail_deliveries": len(sent),
        "mail_repeats": len(sent) - len({row[0] for row in sent}),
        "plain_reader_lost": found.plain_lost,
        "published_s": round(seen.published_s, 1),
        "drained_s": round(seen.drained_s, 1),
        "lag_p50_s": round(statistics.median(lag), 3) if lag else None,
        "lag_p99_s": round(lag[int(0.99 * (len(lag) - 1))], 3) if lag else None,
        "lag_max_s": round(lag[-1], 3) if lag else None,
    }
    return found


def completeness(group: str, truth: dict[int, Any], delivered: list[int], *, once: bool) -> list[str]:
    """Every committed event, none of the aborted, and where it is promised none twice."""
    counts = Counter(delivered)
    missing, strange = set(truth) - set(counts), set(counts) - set(truth)
    twice = [each for each, count in counts.items() if count > 1] if once else []
    wrong = []
    if missing:
        wrong.append(f"{group}: {len(missing)} committed events were never delivered: {sorted(missing)[:5]}")
    if strange:
        wrong.append(
            f"{group}: {len(strange)} events were delivered that were rolled back: {sorted(strange)[:5]}"
        )
    if twice:
        wrong.append(f"{group}: {len(twice)} events had their effect more than once: {sorted(twice)[:5]}")
    return wrong


def order(group: str, delivered: list[tuple[Any, ...]]) -> list[str]:
    """For each key the order of its commits, which is that of its versions."""
    by_key: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for _, name, version, number, _ in delivered:
        if name is not None:
            by_key[name].append((version, number))
    wrong = [name for name, moves in by_key.items() if moves != sorted(moves)]
    return [f"{group}: {len(wrong)} of {len(by_key)} keys out of order: {sorted(wrong)[:5]}"] if wrong else []


def sinks(folder: Path) -> list[tuple[Any, ...]]:
    """What the drainers of the second group wrote, by time; a line that its process died in is no delivery."""
    rows = []
    for file in folder.glob("delivered-*.jsonl"):
        for line in file.read_text().splitlines():
            try:
                event_id, key, _, version, number, _, at = json.loads(line)
            except ValueError:
                continue
            rows.append((event_id, key, version, number, at))
    return sorted(rows, key=lambda row: float(row[4]))


def first_of_each(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    first: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        first.setdefault(row[0], row)
    return list(first.values())
