"""A part of the corpus of bad requests, against a real `fencerow serve`. `python -m tools.attack corpus` plays all."""

from __future__ import annotations

import asyncio

import pytest

from tools.attack.corpus import MEMORY_MIB_MAX, part, told
from tools.attack.place import under_attack

# Of the operations, and of the requests to each of them. The engines share neither.
EVERY = 31


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_that_strangers_send_is_stored_or_breaks_it(
    request: pytest.FixtureRequest, kind: str
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    offset = 0 if kind == "postgres" else EVERY // 2  # each engine is sent others
    with under_attack(kind, url=url) as place:
        before = place.kept()
        outcome = asyncio.run(part(place, EVERY, offset))
        changed = [name for name, rows in place.kept().items() if rows != before[name]]
        found = told(place, outcome, changed)

    assert found["faults"] == []
    assert (found["tracebacks_in_the_log"], changed) == (0, [])
    assert found["memory_mib_at_most"] < MEMORY_MIB_MAX
    assert outcome.requests.total() > 30 and before["fencerow_jobs" if kind == "sqlite" else "jobs"][0] > 5
