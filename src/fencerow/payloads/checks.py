"""What the doctor says of sealed and signed payloads: under which keys they are stored, and which were altered."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, info, warn
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation, text_or_none
from fencerow.db.text import amount

LOOK_MAX = 10_000
AGE_S = 7 * 24 * 3600.0
LIVE = "live jobs"


@operation(alone=True, repeatable=True, writes="")
def packed_keys(*, look: int) -> Steps[dict[str, dict[str | None, int]]]:
    """How many payloads lie under each key, by their place; None: without one. Of at most so many of each place."""
    places: dict[str, dict[str | None, int]] = {}
    for place, key, count in (yield from execute("packed_keys", look=look)):
        places.setdefault(str(place), {})[text_or_none(key)] = as_int(count)
    return places


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
            "find out who wrote to the database: `fencerow jobs show` has each; then submit the work again",
        )
    places = engine.run(packed_keys(look=LOOK_MAX))
    if any(key is not None for keys in places.values() for key in keys):
        shown = [told for place, keys in sorted(places.items()) if (told := _told(place, keys))]
        yield info("keys of payloads", f"payloads by their key: {'; '.join(shown)}")


def _told(place: str, keys: dict[str | None, int]) -> str:
    """How many lie there under each key, and without one where live jobs wait."""
    named = {key or "none": count for key, count in keys.items() if key is not None or place == LIVE}
    counted = ", ".join(f"{count} under {key}" for key, count in sorted(named.items()))
    bound = f" (of the first {LOOK_MAX:,}: there may be more)" if sum(keys.values()) >= LOOK_MAX else ""
    return f"{place} {counted or 'under none'}{bound}" if counted or bound else ""
