"""What `doctor` says of `once` and of windows: keys that nobody removes."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, warn
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation

LEFT_S, LEFT_MAX = 86400.0, 10_000  # a worker removes what is over within minutes


@operation(alone=True, repeatable=True, writes="")
def leftovers() -> Steps[int]:
    """How many keys of `once` and admissions of windows have been over for a day and are still there."""
    return as_int((yield from execute("once_leftovers", age_s=LEFT_S, limit=LEFT_MAX))[0][0])


def examine_leftovers(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Keys and windows that were over long ago; nothing where there are none."""
    number = engine.run(leftovers())
    if number:
        yield warn(
            "leftovers",
            f"{'at least ' if number >= LEFT_MAX else ''}{number} keys of once and windows were over a day ago",
            "a worker removes them: run one, here `fencerow worker` without any job will do",
        )
