"""What the doctor says of sealed and signed payloads: under which keys live jobs are stored, and which were altered."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Steps, as_int, execute, operation, text_or_none
from fencerow.core.finding import Finding, info, warn
from fencerow.core.model.text import amount

LOOK_MAX = 10_000
AGE_S = 7 * 24 * 3600.0


@operation(alone=True, repeatable=True, writes="")
def packed_keys(*, look: int) -> Steps[dict[str | None, int]]:
    """How many live jobs have their arguments under each key; None: without one. Of at most so many jobs."""
    rows = yield from execute("packed_keys", look=look)
    return {text_or_none(key): as_int(count) for key, count in rows}


@operation(alone=True, repeatable=True, writes="")
def altered_payloads(*, age_s: float, look: int) -> Steps[tuple[int, str | None]]:
    """How many jobs failed as their arguments were altered, and one of them, among so many of the newest."""
    ((count, job_id),) = yield from execute("altered_payloads", age_s=age_s, look=look)
    return as_int(count), text_or_none(job_id)


def examine_payloads(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Nothing is said where nothing is sealed or signed, and nothing was altered."""
    count, job_id = engine.run(altered_payloads(age_s=AGE_S, look=LOOK_MAX))
    if count:
        yield warn(
            "altered payloads",
            f"{amount(count, 'job')} failed within {AGE_S / 86400:.0f} days, as the stored arguments were not what was "
            f"sealed or signed, such as {job_id}",
            "find out who wrote to the database: `fencerow jobs show` has each; then submit the work anew",
        )
    keys = engine.run(packed_keys(look=LOOK_MAX))
    if any(key is not None for key in keys):
        shown = [f"{number} under {key or 'none'}" for key, number in keys.items()]
        yield info("keys of payloads", f"live jobs by the key of their arguments: {', '.join(shown)}")
