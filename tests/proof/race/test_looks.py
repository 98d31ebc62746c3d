"""The jobs are looked at after every transaction that changed them: that tells what a check at the end cannot."""

from __future__ import annotations

import re

import pytest

from fencerow.core.store import store
from fencerow_proof.arena.actor import Script
from fencerow_proof.arena.held import TABLES
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


# Made with the schema and never changed in an arena, or emptied with the table whose partition it is.
KEPT = {"finished_periods", "payload_owner", "finished_kept"}


def test_every_table_is_emptied_before_an_order_and_its_changes_are_held() -> None:
    """What another order left behind may hide what is wrong in this one."""
    made = re.compile(r"^CREATE TABLE fencerow\.(\w+)", re.MULTILINE)
    tables = {name for each in store.known_migrations("postgres") for name in made.findall(each.text)}

    assert tables == {*TABLES} | KEPT
