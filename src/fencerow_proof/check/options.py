"""What a check is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from fencerow_proof.check.wire import Declared

ORDERS = 200
RUN_S = 20.0


@dataclass(frozen=True)
class Options:
    """`job` is `MODULE:JOB`; `args` one JSON object. `url` names an empty PostgreSQL database to work beside.

    `setup` is `module:function` (called with the URL of the scratch database) or a file of SQL. `ignored` are columns
    (`table.column`, or `table.*`) that are not compared; `allowed` what may leave the process undeclared. At most
    `orders` orders of two runs are played; `run_s` bounds one run.
    """

    job: str
    app: str = ""
    args: str = "{}"
    engine: str | None = None
    url: str | None = None
    setup: str | None = None
    outside: tuple[Declared, ...] = ()
    ignored: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    orders: int = ORDERS
    run_s: float = RUN_S
    two_jobs: bool = False
    seed: int = field(default=1)
    is_stored: bool = False  # `job` is the name of a stored job, whose arguments come with its attempt
