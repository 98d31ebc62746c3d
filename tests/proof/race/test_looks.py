"""The jobs are looked at after every transaction that changed them: that tells what a check at the end cannot."""

from __future__ import annotations

import pytest

from fencerow_proof.arena.actor import Script
from fencerow_proof.arena.race import Scenario
from fencerow_proof.explorer.violation import Violation
from tests.proof.race.conftest import Race
from tests.proof.race.people import acting, anything, with_jobs
from tests.proof.race.shards import asked


def test_an_attempt_that_nobody_claimed_is_seen_although_it_is_taken_back(race: Race) -> None:
    jobs = "fencerow_jobs" if race.mode == "sqlite" else "fencerow.jobs"

    def there_and_back() -> Script:
        yield asked(f"UPDATE {jobs} SET attempt = attempt + 1")
        yield asked(f"UPDATE {jobs} SET attempt = attempt - 1")

    with pytest.raises(Violation, match=r"came to attempt 1 without a claim.*fell from 1 to 0"):
        race(Scenario("there and back", with_jobs(), [acting("hand", there_and_back)], anything))
