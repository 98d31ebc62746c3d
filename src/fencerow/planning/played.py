"""What a simulation came to, for people and for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.times import span
from fencerow.planning.charts import backlog_lines, svg, used_lines
from fencerow.planning.plan import ALL_QUEUES, Plan
from fencerow.planning.simulating import Simulation

KEYS_SHOWN = 5  # those most in use
WIDTH = 80
COLUMNS = (
    Column("job", least=12),
    Column("submitted"),
    Column("left out"),
    Column("waits p50"),
    Column("p95"),
    Column("most"),
)


def show_played(plan: Plan, found: Simulation, seed: int) -> None:
    """Print it."""
    width = min(output.width() or WIDTH, 120)
    output.say(f"simulated: {span(float(plan.horizon_s))}, seed {seed}; jobs that wait:")
    for line in backlog_lines(found.backlog, float(plan.horizon_s), width):
        output.say(line)
    output.say()
    for line in used_lines(used(plan, found), width):
        output.say(line)
    output.say()
    output.table(COLUMNS, [_row(each.name, found) for each in plan.jobs])
    if plan.outage is not None:
        done = "not drained" if found.drained_s is None else f"drained after {span(found.drained_s)}"
        output.say()
        output.say_text(f"simulated, the backlog of the outage is {done}")


def played_document(plan: Plan, found: Simulation, seed: int) -> dict[str, object]:
    """For programs."""
    return {
        "seed": seed,
        "horizon_s": float(plan.horizon_s),
        "every_s": found.every_s,
        "backlog": found.backlog,
        "used": used(plan, found),
        "drained_s": found.drained_s,
        "jobs": [
            {
                "job": each.name,
                "submitted": found.submitted[each.name],
                "left_out": found.left_out[each.name],
                "wait_p50_s": _at_share(found.waits_s.get(each.name, ()), 0.5),
                "wait_p95_s": _at_share(found.waits_s.get(each.name, ()), 0.95),
                "wait_most_s": _at_share(found.waits_s.get(each.name, ()), 1.0),
            }
            for each in plan.jobs
        ],
    }


def picture(plan: Plan, found: Simulation, seed: int) -> str:
    """As SVG."""
    return svg(found.backlog, used(plan, found), float(plan.horizon_s), f"fencerow plan, seed {seed}")


def used(plan: Plan, found: Simulation) -> dict[str, float]:
    """Which share of the time was in use: of each pool of slots, and of the keys with most to do."""
    horizon_s = float(plan.horizon_s)
    pools = {
        f"slots of {'all queues' if pool == ALL_QUEUES else pool}": found.busy_s.get(f"slots {pool}", 0.0)
        / (plan.workers.processes * slots * horizon_s)
        for pool, slots in plan.workers.slots.items()
    }
    at_once_of = {group.name: group.at_once for group in plan.keys}
    keys = {
        f"key {name}": busy_s / (at_once_of[name.rpartition("/")[0]] * horizon_s)
        for name, busy_s in found.busy_s.items()
        if name.rpartition("/")[0] in at_once_of
    }
    most = sorted(keys, key=lambda name: (-keys[name], name))[:KEYS_SHOWN]
    return pools | {name: keys[name] for name in most}


def _row(name: str, found: Simulation) -> tuple[object, ...]:
    waits = found.waits_s.get(name, ())
    told = (_at_share(waits, share) for share in (0.5, 0.95, 1.0))
    return (
        name,
        found.submitted[name],
        found.left_out[name],
        *(None if each is None else span(each) for each in told),
    )


def _at_share(values: Sequence[float], share: float) -> float | None:
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None
