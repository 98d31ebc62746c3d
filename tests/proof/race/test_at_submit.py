"""Races of a submit that gives the first of a key its turn at once, under the lock of the gate.

That no key has more turns than it allows is an invariant: it is looked at after each order of every race.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import pytest

from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.turns import looks
from fencerow_proof.arena.actor import Script, doing
from fencerow_proof.arena.postgres import PostgresArena
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, JOB, OTHER_JOB, THIRD_JOB, acting, of_a_key, register
from tests.proof.race.test_passed_on import NO_ARRIVAL, ends
from tests.proof.race.test_turns import HAND_OVER, LOOK, goes_to, one_has_it, turned, waiting, with_names


def whoever(_stored: Sequence[NewJob]) -> None:
    """Nobody is woken here."""


def comes_alone(job_id: str) -> Script:
    """It may have its turn at once."""
    yield store.submit_gated([of_a_key(job_id)], told=whoever)


def comes_in_one(job_id: str) -> Script:
    """The same in one statement, which is its transaction: PostgreSQL alone."""
    yield store.submit_with_turn(of_a_key(job_id), told=whoever)


def comes(job_id: str) -> Script:
    """In the transaction of somebody, who may hold no gate."""
    yield store.submit_gated([of_a_key(job_id)])


def nobody() -> Script:
    """A setup: a key that nobody has ever named."""
    yield register(FIRST)


two_come = Scenario(
    "submit at once × submit at once × hand_over",
    nobody,
    [
        acting("client", lambda: comes_alone(JOB)),
        acting("other", lambda: comes_alone(OTHER_JOB)),
        doing("first", HAND_OVER),
    ],
    goes_to(JOB, OTHER_JOB),
)
two_come_to_a_known_gate = Scenario(
    "submit at once × submit at once at a known gate",
    waiting(),
    [acting("client", lambda: comes_alone(JOB)), acting("other", lambda: comes_alone(OTHER_JOB))],
    goes_to(JOB, OTHER_JOB),
)
two_come_in_one = Scenario(
    "submit in one × submit in one at a known gate",
    waiting(),
    [acting("client", lambda: comes_in_one(JOB)), acting("other", lambda: comes_in_one(OTHER_JOB))],
    goes_to(JOB, OTHER_JOB),
)
one_ends_beside_one = Scenario(
    "submit in one × succeed that passes on × hand_over",
    one_has_it(of_a_key(JOB), of_a_key(OTHER_JOB)),
    [
        acting("client", lambda: comes_in_one(THIRD_JOB)),
        doing("worker", ends()),
        doing("first", HAND_OVER),
    ],
    goes_to(OTHER_JOB),
)
the_last_ends_beside_one = Scenario(
    "submit in one × succeed × hand_over",
    one_has_it(of_a_key(JOB)),
    [
        acting("client", lambda: comes_in_one(OTHER_JOB)),
        doing("worker", ends()),
        doing("first", HAND_OVER),
    ],
    goes_to(OTHER_JOB),
)
one_waits = Scenario(
    "submit at once × submit × hand_over",
    nobody,
    [
        acting("client", lambda: comes_alone(JOB)),
        acting("other", lambda: comes(OTHER_JOB)),
        doing("first", LOOK),
    ],
    goes_to(JOB, OTHER_JOB),
)
one_ends = Scenario(
    "submit at once × succeed that passes on × hand_over",
    one_has_it(of_a_key(JOB), of_a_key(OTHER_JOB)),
    [
        acting("client", lambda: comes_alone(THIRD_JOB)),
        doing("worker", ends()),
        doing("first", HAND_OVER),
    ],
    goes_to(OTHER_JOB),
)
the_last_ends = Scenario(
    "submit at once × succeed × hand_over",
    one_has_it(of_a_key(JOB)),
    [
        acting("client", lambda: comes_alone(OTHER_JOB)),
        doing("worker", ends()),
        doing("first", HAND_OVER),
    ],
    goes_to(OTHER_JOB),
)


@named(62)
@pytest.mark.parametrize(
    "raced", [two_come, two_come_to_a_known_gate, one_waits, one_ends, the_last_ends], ids=with_names
)
def test_a_turn_that_comes_with_a_submit_is_nobody_elses(race: Race, raced: Scenario) -> None:
    race(raced)


@in_modes("plain", "held")
@named(62)
@pytest.mark.parametrize(
    "raced", [two_come_in_one, one_ends_beside_one, the_last_ends_beside_one], ids=with_names
)
def test_a_turn_that_comes_with_one_statement_is_nobody_elses(race: Race, raced: Scenario) -> None:
    race(raced)


LOCKING = "fencerow.lock_free_turns("
HELD_BY = "EXISTS (SELECT FROM fencerow.jobs AS one WHERE one.gate IS NULL AND one.exclusive = substr(mine.name, 5))"
UNCOUNTED = ("WHERE NOT EXISTS (", "WHERE true OR NOT EXISTS (")
IN_ONE_SNAPSHOT = ("FROM there) AS mine;", f"FROM there) AS mine WHERE NOT {HELD_BY};")
UNLOCKED = ("SELECT there.name FROM there", "SELECT place.gate FROM unnest(gates) AS place (gate)")


def altered(url: str, query: str, *changes: tuple[str, str]) -> Cut:
    """The function that locks and counts, with another text, in place of ours."""
    with psycopg.connect(url, autocommit=True) as connection:
        asked = "SELECT pg_get_functiondef(CAST('fencerow.lock_free_turns' AS regproc))"
        ((text,),) = connection.execute(asked).fetchall()
        for old, new in ((LOCKING, other := "fencerow.lock_free_turns_otherwise("), *changes):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        connection.execute(text.encode())
    return Cut(query, (LOCKING, other))


TWO_COME = [("free_turns", two_come_to_a_known_gate), ("submit_one_keyed", two_come_in_one)]


@in_modes("held")
@named(62)
@pytest.mark.parametrize(("query", "raced"), TWO_COME)
@pytest.mark.parametrize(
    "changes", [(UNCOUNTED,), (UNCOUNTED, IN_ONE_SNAPSHOT)], ids=["not at all", "in the snapshot of the lock"]
)
def test_two_have_it_where_a_submit_does_not_count_behind_the_lock(
    race: Race,
    arenas: Mapping[str, PostgresArena],
    changes: Sequence[tuple[str, str]],
    query: str,
    raced: Scenario,
) -> None:
    race.turns_red(raced, altered(arenas["held"].url, query, *changes))


@in_modes("plain", "held")
@named(62)
def test_two_have_it_where_a_submit_does_not_need_the_lock(
    race: Race, arenas: Mapping[str, PostgresArena]
) -> None:
    race.turns_red(two_come_to_a_known_gate, altered(arenas[race.mode].url, "free_turns", UNLOCKED))


# A look passes over the gates where somebody has the turn who lets nobody run beside itself.


comes_beside = Scenario(
    "submit × succeed × hand_over × hand_over",
    one_has_it(of_a_key(JOB)),
    [
        acting("client", lambda: comes(OTHER_JOB)),
        doing("worker", ends()),
        doing("first", HAND_OVER),
        doing("second", HAND_OVER),
    ],
    goes_to(OTHER_JOB),
)


@named(62)
def test_who_comes_beside_one_that_runs_alone_is_not_forgotten(race: Race) -> None:
    race(comes_beside, share=0.4)


@in_modes("held")
@named(62)
def test_who_comes_beside_one_that_ends_is_forgotten_where_the_end_leaves_no_arrival(race: Race) -> None:
    race.turns_red(comes_beside, NO_ARRIVAL)


# Where nobody is at its key, one that needs a limit too waits at the limit first.


def comes_under_a_limit(job_id: str) -> Script:
    """It waits at the limit if its key seems to be free, and at its key if not."""
    yield store.submit_gated([of_a_key(job_id, limits=("a",))], told=whoever)


def under_a_limit(*jobs: NewJob) -> Any:
    """A setup: there is room under the limit; the first of these has the turn of the key, and runs."""

    def setup() -> Script:
        yield from one_has_it(*jobs, runs=bool(jobs))()
        yield define(Limit("a", at_once=9), actor=None, reason=None)

    return setup


def one_goes(story: Story) -> None:
    """A check: what was told is enough, and one of the key has its turn."""
    while story.run(looks.turns_wanted()).at_once:
        story.run(HAND_OVER)
    assert len(turned(story)) == 1, "its key and its limit are free, and nobody looks"


two_under_a_limit = Scenario(
    "submit at once × submit at a limit × hand_over",
    under_a_limit(),
    [
        acting("client", lambda: comes_alone(JOB)),
        acting("other", lambda: comes_under_a_limit(OTHER_JOB)),
        doing("first", HAND_OVER),
    ],
    one_goes,
)
one_ends_beside_a_limit = Scenario(
    "submit at a limit × succeed × hand_over",
    under_a_limit(of_a_key(JOB)),
    [
        acting("client", lambda: comes_under_a_limit(OTHER_JOB)),
        doing("worker", ends()),
        doing("first", HAND_OVER),
    ],
    one_goes,
)


@named(62)
@pytest.mark.parametrize("raced", [two_under_a_limit, one_ends_beside_a_limit], ids=with_names)
def test_who_waits_at_a_limit_first_is_not_forgotten(race: Race, raced: Scenario) -> None:
    race(raced)
