"""How long what a silent worker held stayed away: from its kill or stop until another worker had taken it back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fencerow.db.postgres import PostgresEngine
from tests.proof.storm import ledger
from tests.proof.storm.pace import Pace
from tests.proof.storm.plan import (
    LEASE_S,
    RECOVERY_AFTER_HOUR_S,
    RECOVERY_AFTER_TROUBLE_S,
    RECOVERY_S,
)
from tests.proof.storm.scene import AN_HOUR, Silence, Trouble

POSTGRES = """
SELECT worker.name, CAST(worker.id AS text),
       CAST(extract(epoch FROM worker.renewed_at) * 1000000 AS bigint),
       CAST(extract(epoch FROM worker.ended_at) * 1000000 AS bigint),
       CAST(extract(epoch FROM event.at) * 1000000 AS bigint)
FROM fencerow.job_events AS event
JOIN fencerow.workers AS worker ON CAST(worker.id AS text) = event.detail ->> 'holder'
WHERE event.kind = 'reclaimed'
"""
SQLITE = """
SELECT worker.name, worker.id, worker.renewed_at, worker.ended_at, event.at
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

    passed_s: float = 0.0  # meanwhile, for the worker that nothing strikes

    @property
    def bound_s(self) -> float:
        """Within so many seconds it had to be back."""
        if self.trouble == AN_HOUR:
            return RECOVERY_AFTER_HOUR_S
        return RECOVERY_AFTER_TROUBLE_S if self.trouble else RECOVERY_S

    @property
    def is_late(self) -> bool:
        """It took too long, and not because the machine did everything slowly."""
        return min(self.took_s, self.passed_s) > self.bound_s


@dataclass(frozen=True)
class GivenUp:
    """One life of a worker, from which jobs were taken back. A name registers anew after it was declared dead.

    When it began is read from its id, which the worker makes by the clock of the host. By the database's clock, which
    faults move, nearly all registrations are made in another hour once it was an hour off, and look as if they followed
    all silences, or came before every other.
    """

    worker: str
    began_s: float
    renewed_s: float  # for the last time
    ended_s: float
    back_s: list[float] = field(default_factory=list)  # when its jobs were taken back


def recoveries(
    engine: ledger.Engine,
    silences: Sequence[Silence],
    troubles: Sequence[Trouble],
    pace: Pace,
) -> list[Recovery]:
    """One for each silence that left jobs behind, read from what the others wrote when they took them back."""
    given_up = _given_up(engine)
    found = []
    for silence in silences:
        held = [each for each in given_up if each.worker == silence.worker and each.began_s < silence.at]
        if not held:
            continue
        one = max(held, key=lambda each: each.began_s)
        if one.renewed_s > silence.until:
            continue  # it spoke again before anybody gave it up: what it lost later, it did not lose by this silence
        # What was taken back while the clock was an hour ahead, and noted in a time to come, measures nothing.
        again = min(
            (s.at for s in silences if s.worker == silence.worker and s.at > silence.at), default=time.time()
        )
        back = [at for at in one.back_s if silence.at - 0.5 < at < again]
        if back:
            last = _last_trouble(troubles, silence.at, max(back))
            owed_from = silence.at if last is None else max(silence.at, last.until)
            found.append(
                Recovery(
                    silence.worker,
                    silence.how,
                    max(back) - owed_from,
                    "" if last is None else last.what,
                    one.ended_s - owed_from,
                    pace.passed_s(owed_from, max(back)),
                )
            )
    return found


def _given_up(engine: ledger.Engine) -> list[GivenUp]:
    found: dict[str, GivenUp] = {}
    question = POSTGRES if isinstance(engine, PostgresEngine) else SQLITE
    for name, holder, *times in ledger.ask(engine, question):
        renewed, ended, back = map(_s, times)
        one = GivenUp(str(name), _made_s(str(holder)), renewed, ended)
        found.setdefault(str(holder), one).back_s.append(back)
    return list(found.values())


def _made_s(id_: str) -> float:
    """When it was made: a UUIDv7 begins with the milliseconds."""
    return int(id_.replace("-", "")[:12], 16) / 1_000


def _s(microseconds: object) -> float:
    return int(str(microseconds)) / 1_000_000


def _last_trouble(troubles: Sequence[Trouble], since: float, until: float) -> Trouble | None:
    """Trouble between then and then, or shortly before: for a lease after it nobody may declare others dead."""
    during = [each for each in troubles if each.since < until and each.until + LEASE_S + 1.0 > since]
    return max(during, key=lambda each: each.until, default=None)
