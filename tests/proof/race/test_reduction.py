"""Leaving out the orders that come to the same leaves out no outcome, and no fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Query, qualified
from fencerow.db.queries import postgres_names as names
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.postgres import PostgresArena
from fencerow_proof.arena.race import Arena, Scenario, play, play_again
from fencerow_proof.arena.reduction import Reduction, may_write
from fencerow_proof.explorer.orders import Choose, play_reduced
from fencerow_proof.explorer.violation import Violation
from tests.proof.race import (
    test_claim,
    test_finish,
    test_marks,
    test_moves,
    test_mutex,
    test_reap,
    test_submit,
    test_zombie,
)
from tests.proof.race.conftest import Cut

pytestmark = pytest.mark.prove

FLEETING = re.compile(r"\d{15,17}|0x[0-9a-f]+")  # instants and addresses
LIMIT = 2000


@pytest.fixture(scope="module")
def arena(race_server: PostgresServer) -> Iterator[PostgresArena]:
    url = race_server.create_role_and_schema(role="racer", database="race_reduced")
    engine = PostgresEngine(url, store.postgres_queries())
    store.migrate(engine)
    engine.close()
    made = PostgresArena(url, store.postgres_queries(), held=True)
    yield made
    made.close()
    # A process that plays other files between two tests of this one makes it a second time.
    race_server.drop_database("race_reduced")


def outcomes(arena: Arena, scenario: Scenario, *, reduced: bool) -> set[str]:
    """How the actors fared and what became of the jobs, over all orders; or over one of those that come to the same."""
    found: set[str] = set()

    def once(choose: Choose) -> list[str]:
        story = play(arena, scenario, choose if reduced else lambda options, *_: choose(options))
        jobs = sorted(repr(job) for job in story.run(looking.list_jobs()))
        found.add(FLEETING.sub("T", f"{story.results} {sorted(story.waited)} {jobs}"))
        return story.order

    assert play_reduced(once, limit=LIMIT) is not None
    return found


COMPARED = {  # whose orders are few enough to be played whole
    "plain": [test_finish.group, test_submit.lost_submit, test_marks.taken_over, test_submit.same_key],
    "held": [
        test_claim.claim_cancel,
        test_submit.same_key,
        test_submit.lost_submit,
        test_finish.group,
        test_mutex.takeover_release,
    ],
    "sqlite": [test_zombie.renew_die, test_moves.cancel_loop, test_marks.taken_over, test_submit.expired],
}


@pytest.mark.parametrize(
    ("mode", "scenario"),
    [pytest.param(mode, each, id=f"{mode}: {each.name}") for mode in COMPARED for each in COMPARED[mode]],
)
def test_no_outcome_is_left_out(arenas: Mapping[str, Arena], mode: str, scenario: Scenario) -> None:
    arena = arenas[mode]

    assert outcomes(arena, scenario, reduced=True) == outcomes(arena, scenario, reduced=False)


LOCK = "pg_try_advisory_xact_lock(hashtextextended(CAST(CAST(:holder AS uuid) AS text), 7300))"
FAULTS = [
    (test_moves.cancel_loop, [Cut("read_fences", ("fencerow.all_jobs", "fencerow.jobs"))]),
    (test_claim.suspects, [Cut("lock_suspects", (LOCK, ":holder <> ''"))]),
    (test_reap.newcomer, [*test_reap.ANTI_JOIN]),
    (test_marks.taken_over, [Cut("log", ("    FOR SHARE\n", ""))]),
]


@pytest.mark.parametrize(("scenario", "cuts"), [pytest.param(*fault, id=fault[0].name) for fault in FAULTS])
def test_no_fault_is_left_out(arena: PostgresArena, scenario: Scenario, cuts: list[Cut]) -> None:
    queries = store.postgres_queries()
    for cut in cuts:
        assert cut.postgres is not None
        old, new = (qualified(text, names("fencerow")) for text in cut.postgres)
        queries = queries.altered(cut.query, old, new)
    arena.queries = queries

    with pytest.raises(Violation):
        play_reduced(lambda choose: play(arena, scenario, choose).order, limit=LIMIT)


def test_an_order_that_was_named_is_played_again(arena: PostgresArena) -> None:
    cut = Cut("read_fences", ("fencerow.all_jobs", "fencerow.jobs"))
    assert cut.postgres is not None
    old, new = (qualified(text, names("fencerow")) for text in cut.postgres)
    arena.queries = store.postgres_queries().altered(cut.query, old, new)
    with pytest.raises(Violation) as caught:
        play_reduced(lambda choose: play(arena, test_moves.cancel_loop, choose).order, limit=LIMIT)

    with pytest.raises(Violation):
        play_again(arena, test_moves.cancel_loop, caught.value.order)


JOBS = Query("jobs", ('UPDATE "fencerow".jobs SET x = 1 RETURNING id',), ())
KEYS = Query("keys", ('UPDATE "fencerow".keys SET x = 1 RETURNING id',), ())


def after(*steps: tuple[str, Query, bool]) -> Any:
    """The state after these actors committed these statements, one after the other."""
    reduction = Reduction()
    for actor, query, wrote in steps:
        reduction.steps(actor, query.name, query)
        reduction.answered(actor, query, "1", wrote=wrote, alone=True)
        reduction.ended(actor, committed=True)
    return reduction.state()


def test_only_steps_that_do_not_see_each_other_may_change_places() -> None:
    assert after(("a", JOBS, True), ("b", KEYS, True)) == after(("b", KEYS, True), ("a", JOBS, True))
    assert after(("a", JOBS, True), ("b", JOBS, True)) != after(("b", JOBS, True), ("a", JOBS, True))
    assert after(("a", JOBS, False), ("b", JOBS, False)) == after(("b", JOBS, False), ("a", JOBS, False))


def test_who_waits_first_is_part_of_the_state() -> None:
    one, other = Reduction(), Reduction()
    for reduction, queue in ((one, "ab"), (other, "ba")):
        for actor in queue:
            reduction.steps(actor, "jobs", JOBS)
        for actor in queue:
            reduction.waits(actor, JOBS)

    assert one.state() != other.state()


def test_what_returns_nothing_changed_nothing() -> None:
    assert may_write(JOBS, [("1",)])
    assert not may_write(JOBS, [])
    assert not may_write(Query("look", ('SELECT id FROM "fencerow".jobs',), ()), [("1",)])
    assert may_write(Query("silent", ('DELETE FROM "fencerow".jobs',), ()), [])
