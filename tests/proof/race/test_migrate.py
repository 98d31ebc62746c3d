"""Two processes start at once on an empty database and both bring its schema up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from fencerow.core.schema.migrate import apply_next, lock_number
from fencerow.core.store import store
from fencerow.db.migration import Migration
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.actor import Script
from fencerow_proof.arena.race import Scenario, Story, explore
from fencerow_proof.explorer.violation import Violation
from tests.proof.race.bare import KNOWN, LEDGER, Bare, with_second
from tests.proof.race.people import acting, nothing

pytestmark = pytest.mark.prove


@pytest.fixture
def bare(race_server: PostgresServer) -> Iterator[Bare]:
    race_server.create_role_and_schema(role="racer", database="race_migrate")
    arena = Bare(race_server, "race_migrate", with_second(store.postgres_queries()))
    yield arena
    arena.close()
    race_server.drop_database("race_migrate")


def migrating() -> Script:
    applied = []
    parts = sum(len(step.parts) for step in KNOWN)
    for _ in range(4 * parts):  # a starter tries on; an explorer must come to an end
        step = yield apply_next(KNOWN, ledger=LEDGER, lock=lock_number(LEDGER), actor=None)
        if step is None:
            break
        if isinstance(step, Migration):
            applied.append(step.version)
    return applied


def each_step_once(story: Story) -> None:
    one, other = story.results["one"], story.results["other"]
    for result in (one, other):
        assert isinstance(result, list), result
    assert sorted([*one, *other]) == [step.version for step in KNOWN]


migrate_migrate = Scenario(
    "migrate × migrate", nothing, [acting("one", migrating), acting("other", migrating)], each_step_once
)


def test_two_migrators_apply_each_step_once(bare: Bare, request: Any, record_property: Any) -> None:
    report = explore(bare, migrate_migrate, limit=max(30, request.config.getoption("--orders") // 10))

    record_property("race", json.dumps(asdict(report)))


def test_they_meet_without_the_lock(bare: Bare) -> None:
    bare.queries = bare.queries.altered(
        "try_lock",
        "pg_try_advisory_xact_lock(CAST(:lock AS bigint))",
        "CAST(:lock AS bigint) IS NOT NULL",
    )

    with pytest.raises(Violation):
        explore(bare, migrate_migrate, limit=60)
