"""What must be true when an outage is over and all is quiet, whatever happened in it."""

from __future__ import annotations

from tests.whole.outages.callers import Callers
from tests.whole.outages.shop import Shop


async def check_books(shop: Shop, callers: Callers) -> str:
    """Compare what callers were promised with what is stored and paid; returns the numbers in one line."""
    await callers.settle_doubts()
    await shop.all_ended()
    stored, paid = shop.jobs_by_number(), shop.payments()

    assert callers.wrong == [], "each error says whether to ask or to repeat"
    twice = {number: rows for number, rows in stored.items() if len(rows) != 1}
    assert twice == {}, "no number has two jobs"
    ids = {number: rows[0][0] for number, rows in stored.items()}
    lost = {number: job_id for number, job_id in callers.accepted.items() if ids.get(number) != job_id}
    assert lost == {}, "what was accepted is there, under the id that was given"
    kept = {number: why for number, why in callers.refused.items() if number in ids}
    assert kept == {}, "of what was refused nothing was stored"
    assert set(ids) == set(callers.accepted), "nothing is there that nobody knows of"

    unfinished = {number: rows for number, rows in stored.items() if rows[0][2] != "succeeded"}
    assert unfinished == {}, "every job succeeded in the end"
    due = {number for number, rows in stored.items() if rows[0][1] != "look"}
    assert set(paid) == due, "each job's effect is there, and no other"
    assert max(paid.values(), default=1) == 1, "no effect is there twice"
    assert shop.broken_invariants() == []
    return (
        f"{len(ids)} jobs, {sum(paid.values())} effects, {len(callers.refused)} refused, "
        f"{callers.asked} asked; errors {dict(callers.errors)}"
    )
