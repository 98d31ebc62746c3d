"""Guards that are said twice on purpose, with the reason; taking one of a pair out turns nothing red.

Each stands in its statement all the same: the pair is what another statement, or a later change of this one,
relies on. The list is exempt from "each guard's removal turns a test red"; it is held to what the queries say.
"""

from __future__ import annotations

import pytest

from fencerow.core.store import store
from fencerow.db.queries import postgres_names as names
from fencerow.db.queries import qualified

FENCE = "a live row with a holder is running; the moment of its end is under the row's lock, which is skipped"
LOCKED = "the selection before it holds the row's lock and has judged the newest version"
OWN_ROW = "the ids come from an earlier statement of the same transaction, which holds the rows' locks"

REPEATED = [
    # query, guard, why its removal alone changes nothing
    ("claim", "job.state IS NOT DISTINCT FROM 'queued' AND", LOCKED),
    ("succeed", "AND job.state IS NOT DISTINCT FROM 'running'", FENCE),
    ("fail", "AND job.state IS NOT DISTINCT FROM 'running'", FENCE),
    ("requeue", "AND job.state IS NOT DISTINCT FROM 'running'", FENCE),
    ("stop", "AND job.state IS NOT DISTINCT FROM 'running'", FENCE),
    ("crash", "AND job.state IS NOT DISTINCT FROM 'running'", FENCE),
    ("die", "AND worker.lease_until < (SELECT clock.now FROM clock)", LOCKED),
    ("die", "AND worker.state = 'alive'", LOCKED),
    (
        "reclaim",
        "AND job.state IS NOT DISTINCT FROM 'running'\n      AND job.holder = ANY(CAST(:dead AS uuid[]))",
        LOCKED,
    ),
    ("reclaim", "AND job.attempt = judged.attempt", LOCKED),
    ("time_out", "AND job.state IS NOT DISTINCT FROM 'running'", LOCKED),
    ("disown", "AND job.state IS NOT DISTINCT FROM 'queued'\n  AND job.run_at <= clock.since", LOCKED),
    ("expire", "AND job.expires_at <= clock.now", LOCKED),
    (
        "purge_by_age",
        "AND job.state IS NOT DISTINCT FROM CAST(:state AS text)",
        "a revived job leaves the table, so its old row is never met again",
    ),
    ("purge_keys", "AND COALESCE(owned.expires_at <= (SELECT fencerow.now()), false)", LOCKED),
    (
        "revive",
        "AND COALESCE(job.state, '') IN ('succeeded', 'failed', 'cancelled')",
        "the table holds no other state",
    ),
    ("archive", "AND job.state IN ('succeeded', 'failed', 'cancelled')", OWN_ROW),
    (
        "archive",
        "WHERE NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS known WHERE known.id = ended.id)",
        "no door lets a job in that has ended; this is for a row that was put back by hand, see test_twice.py",
    ),
    ("withdraw", "AND job.state IN ('waiting', 'queued')\n  AND job.attempt = 0", OWN_ROW),
]


@pytest.mark.parametrize(("query", "guard", "reason"), REPEATED)
def test_a_guard_said_twice_is_still_there(query: str, guard: str, reason: str) -> None:
    written = qualified(guard, names("fencerow"))

    assert store.postgres_queries().altered(query, written, "")
    assert reason
