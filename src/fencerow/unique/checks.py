"""Unique keys that nothing moves: submits come to a job that nobody runs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fencerow.command.times import span
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, warn
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation

LATE_S = 3600.0  # its job has been due for so long, and nobody has started it
SHOWN_MAX = 5
LOOKED_AT = 10_000  # keys, in the order of their names


class StuckKey(msgspec.Struct, frozen=True):
    """A unique key whose job has been due for long without an attempt of it running: submits under the key come to it.

    `late_us`: for how long. `replaced`: how often later submits took its place.
    """

    scope: str
    key: str
    job_id: str
    queue: str
    state: str
    late_us: int
    replaced: int


@operation(alone=True, repeatable=True, writes="")
def stuck_keys() -> Steps[list[StuckKey]]:
    """The unique keys whose jobs have been due longest and do not run."""
    rows = yield from execute("stuck_unique_keys", late_s=LATE_S, looked_at=LOOKED_AT, limit=SHOWN_MAX)
    return [
        StuckKey(str(scope), str(key), str(job_id), str(queue), str(state), as_int(late_us), as_int(replaced))
        for scope, key, job_id, queue, state, late_us, replaced in rows
    ]


def examine_unique(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Keys whose job waits for ever: each submit under them is told that there is a job, and no work is done."""
    for each in engine.run(stuck_keys()):
        took = f"; {each.replaced} later submits took its place" if each.replaced > 1 else ""
        yield warn(
            "unique key that nothing moves",
            f"submits under {each.scope}: {each.key} come to job {each.job_id}, which has been due for "
            f"{span(each.late_us / 1e6)} and is {each.state} in queue {each.queue}{took}",
            f"`fencerow why {each.job_id}` says what it waits for; `fencerow jobs cancel {each.job_id}` frees the key",
        )
