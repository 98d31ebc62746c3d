"""How long what a silent worker held stayed away: from its kill or stop until another worker had taken it back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.core.db.postgres import PostgresEngine
from tests.storm import ledger
from tests.storm.plan import LEASE_S, RECOVERY_AFTER_HOUR_S, RECOVERY_AFTER_TROUBLE_S, RECOVERY_S
from tests.storm.scene import AN_HOUR, Silence, Trouble

POSTGRES = """
SELECT worker.name, CAST(extract(epoch FROM worker.registered_at) * 1000000 AS bigint),
       CAST(extract(epoch FROM worker.ended_at) * 1000000 AS bigint),
       CAST(extract(epoch FROM event.at) * 1000000 AS bigint)
FROM fencerow.job_events AS event
JOIN fencerow.workers AS worker ON CAST(worker.id AS text) = event.detail ->> 'holder'
WHERE event.kind = 'reclaimed'
"""
SQLITE = """
SELECT worker.name, worker.registered_at, worker.ended_at, event.at
FROM fencerow.job_events AS event
JOIN fencerow.workers AS worker ON worker.id = json_extract(event.detail, '$.holder')
WHERE event.kind = 'reclaimed'
"""


@dataclass(frozen=True)
class Recovery:
    """What one silent worker held was back so many seconds after it was owed: from the silence on, or, when the
    whole database was struck meanwhile, from the end of that `trouble`."""

    worker: str
    how: str
    took_s: float
    trouble: str = ""
    declared_s: float = (
        0.0  # of that, until the worker was declared dead; the rest is until its last job was taken
    )

    @property
    def is_late(self) -> bool:
        if self.trouble == AN_HOUR:
            return self.took_s > RECOVERY_AFTER_HOUR_S
        return self.took_s > (RECOVERY_AFTER_TROUBLE_S if self.trouble else RECOVERY_S)


def recoveries(
    engine: ledger.Engine, silences: Sequence[Silence], troubles: Sequence[Trouble]
) -> list[Recovery]:
    """One for each silence that left jobs behind, read from what the others wrote when they took them back."""
    text = POSTGRES if isinstance(engine, PostgresEngine) else SQLITE
    # (worker, when it registered): when its jobs were taken back. A name registers anew after it was declared dead.
    taken: dict[tuple[str, float], list[float]] = {}
    ended: dict[tuple[str, float], float] = {}
    for name, registered_us, ended_us, at_us in ledger.ask(engine, text):
        taken.setdefault((str(name), _s(registered_us)), []).append(_s(at_us))
        ended[str(name), _s(registered_us)] = _s(ended_us)
    found = []
    for silence in silences:
        held = [since for name, since in taken if name == silence.worker and since < silence.at]
        if not held:
            continue
        # What was taken back while the clock was an hour ahead, and noted in a time to come, measures nothing.
        again = min(
            (s.at for s in silences if s.worker == silence.worker and s.at > silence.at), default=time.time()
        )
        back = [at for at in taken[silence.worker, max(held)] if silence.at - 0.5 < at < again]
        if back:
            last = _last_trouble(troubles, silence.at, max(back))
            owed_from = silence.at if last is None else max(silence.at, last.until)
            what = "" if last is None else last.what
            declared_s = ended[silence.worker, max(held)] - owed_from
            found.append(Recovery(silence.worker, silence.how, max(back) - owed_from, what, declared_s))
    return found


def _s(microseconds: object) -> float:
    return int(str(microseconds)) / 1_000_000


def _last_trouble(troubles: Sequence[Trouble], since: float, until: float) -> Trouble | None:
    """Trouble between then and then, or shortly before: for a lease after it nobody may declare others dead."""
    during = [each for each in troubles if each.since < until and each.until + LEASE_S + 1.0 > since]
    return max(during, key=lambda each: each.until, default=None)
