"""Races of a hand-over: of a key no more jobs have a turn than it allows, and no free turn is forgotten.

That no key has more turns than it allows is an invariant: it is looked at after each order of every race.
"""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.operators.queues import pause_queue, resume_queue
from fencerow.turns import handing
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    OTHER_JOB,
    SECOND,
    THIRD_JOB,
    acting,
    cancel,
    claim,
    crash,
    die,
    of_a_key,
    overdue,
    reclaim,
    register,
    requeue,
    revive,
    state,
    succeed,
)

ALL = (JOB, OTHER_JOB, THIRD_JOB)
HAND_OVER = handing.hand_over()  # where somebody came or left
LOOK = handing.hand_over(["key:k"])  # what a worker's sweep does: it needs nobody who tells


def turned(story: Story) -> list[str]:
    return [each for each in ALL if state(story, each) in ("queued", "running")]


def waiting(*jobs: NewJob, known: bool = True) -> Any:
    """A setup: these wait at a gate that was looked at before, and nobody was given a turn yet."""

    def setup() -> Script:
        yield register(FIRST)
        yield register(SECOND)
        if known:
            yield LOOK
        if jobs:
            yield store.submit_gated(list(jobs))

    return setup


def one_has_it(*jobs: NewJob, runs: bool = True) -> Any:
    """A setup: the first of these has the turn, and runs. No arrival is left."""

    def setup() -> Script:
        yield from waiting(*jobs)()
        yield HAND_OVER
        if runs:
            yield claim(FIRST)

    return setup


TWO = (of_a_key(JOB), of_a_key(OTHER_JOB))
THREE = (*TWO, of_a_key(THIRD_JOB))


def goes_to(*expected: str) -> Any:
    """A check: what was told is enough for a later hand-over, and the turn is where it belongs."""

    def check(story: Story) -> None:
        story.run(HAND_OVER)
        found = turned(story)
        assert found, "a turn is free, somebody waits, and nobody looks"
        assert len(found) == 1 and found[0] in expected, f"{found} have a turn"

    return check


# Two that hand over.


def used(at_once: int) -> Any:
    def check(story: Story) -> None:
        assert len(turned(story)) == at_once, "a turn was given to nobody"

    return check


two_hands = Scenario(
    "hand_over × hand_over", waiting(*THREE), [doing("first", HAND_OVER), doing("second", LOOK)], used(1)
)
two_at_once = Scenario(
    "hand_over × hand_over at a new gate, two at once",
    waiting(*(of_a_key(each, exclusive_at_once=2) for each in ALL), known=False),
    [doing("first", HAND_OVER), doing("second", LOOK)],
    used(2),
)
two_and_an_end = Scenario(
    "hand_over × hand_over × succeed",
    one_has_it(*THREE),
    [doing("worker", succeed(FIRST)), doing("first", HAND_OVER), doing("second", LOOK)],
    goes_to(OTHER_JOB),
)


def with_names(scenario: Scenario) -> str:
    return scenario.name


def share_of(scenario: Scenario) -> float:
    """All the orders of two; of three, or of many statements, there are too many for every run of the tests."""
    return 0.4 if len(scenario.actors) > 2 or scenario is paused else 1.0


@named(62)
@pytest.mark.parametrize("raced", [two_hands, two_at_once, two_and_an_end], ids=with_names)
def test_two_that_hand_over_give_each_turn_once(race: Race, raced: Scenario) -> None:
    race(raced, share=share_of(raced))


NAMED_GATES = "WHERE gate.name = ANY(CAST(:gates AS text[]))"
UNLOCKED = Cut("lock_gates", ("DO UPDATE\nSET name = EXCLUDED.name\nWHERE false", "DO NOTHING"))
COUNTED_WITH_THE_LOCK = Cut("count_turns", (NAMED_GATES, f"{NAMED_GATES} FOR UPDATE OF gate"))
CORRELATED = Cut(
    "give_turns",
    (
        "WHERE job.id = ANY(CAST(:ids AS uuid[]))",
        """WHERE job.id = ANY(ARRAY(
            SELECT first.id FROM fencerow.jobs AS first
            WHERE first.gate = job.gate AND first.state = 'waiting'
            ORDER BY first.priority DESC, first.run_at, first.id
            LIMIT cardinality(CAST(:ids AS uuid[]))
            FOR UPDATE SKIP LOCKED
        ))""",
    ),
)


@in_modes("plain", "held")
@named(62)
@pytest.mark.parametrize(
    "cuts",
    [[UNLOCKED], [UNLOCKED, COUNTED_WITH_THE_LOCK], [CORRELATED]],
    ids=["no lock", "the count in the statement that locks", "a correlated array"],
)
def test_two_give_a_turn_twice(race: Race, cuts: list[Cut]) -> None:
    race.turns_red(two_hands, *cuts)


HOLDERS = "AND holder.state IN ('queued', 'running')"


@named(62)
def test_a_turn_is_given_twice_where_nobody_counts(race: Race) -> None:
    race.turns_red(two_hands, Cut("count_turns", (HOLDERS, "AND false"), (HOLDERS, "AND 0")))


# Somebody comes.


def open_submit() -> Script:
    yield store.submit_gated([of_a_key(JOB)])


comes = Scenario(
    "hand_over × submit",
    waiting(),
    [acting("client", open_submit), doing("first", HAND_OVER)],
    goes_to(JOB),
)
comes_while_one_ends = Scenario(
    "hand_over × submit × succeed",
    one_has_it(of_a_key(OTHER_JOB)),
    [
        acting("client", open_submit),
        doing("worker", succeed(FIRST, job_id=OTHER_JOB)),
        doing("first", HAND_OVER),
    ],
    goes_to(JOB),
)


@named(62)
@pytest.mark.parametrize("raced", [comes, comes_while_one_ends], ids=with_names)
def test_who_comes_in_an_open_transaction_is_not_forgotten(race: Race, raced: Scenario) -> None:
    race(raced, share=share_of(raced))


@named(62)
def test_who_comes_is_forgotten_where_he_does_not_arrive(race: Race) -> None:
    race.turns_red(comes, NOBODY_ARRIVES)


# Whoever has the turn ends, gives it up, or keeps it.


def ended() -> Script:
    """A setup: one has ended, another has the turn, and no arrival is left."""
    yield from one_has_it(*TWO)()
    yield succeed(FIRST)
    yield HAND_OVER
    yield claim(FIRST)


def dead() -> Script:
    """A setup: who runs the one that has the turn is declared dead."""
    yield from one_has_it(*TWO)()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def past_its_limit() -> Script:
    """A setup: whoever runs the one that has the turn says that it cannot end it."""
    yield from one_has_it(*TWO)()
    yield overdue()


ends = Scenario(
    "hand_over × succeed", one_has_it(*TWO),
    [doing("worker", succeed(FIRST)), doing("first", LOOK)], goes_to(OTHER_JOB),
)  # fmt: skip
cancelled = Scenario(
    "hand_over × cancel of the first that waits", waiting(*TWO),
    [doing("client", cancel()), doing("first", LOOK)], goes_to(OTHER_JOB),
)  # fmt: skip
claimed = Scenario(
    "hand_over × claim",
    one_has_it(*TWO, runs=False),
    [doing("worker", claim(FIRST, 2)), doing("first", LOOK)],
    goes_to(JOB),
)
reclaimed = Scenario(
    "hand_over × reclaim", dead, [doing("reaper", reclaim(FIRST)), doing("first", LOOK)], goes_to(JOB)
)
timed_out = Scenario(
    "hand_over × timeout", past_its_limit,
    [doing("reaper", store.time_out(limit=9, delay_s=60.0, actor="reaper")), doing("first", LOOK)],
    goes_to(OTHER_JOB),
)  # fmt: skip
crashed = Scenario(
    "hand_over × crash", one_has_it(*TWO), [doing("worker", crash(FIRST)), doing("first", LOOK)],
    goes_to(OTHER_JOB),
)  # fmt: skip
retried = Scenario(
    "hand_over × retry", one_has_it(*TWO), [doing("worker", requeue(FIRST)), doing("first", LOOK)],
    goes_to(OTHER_JOB),
)  # fmt: skip
kept = Scenario(
    "hand_over × strict retry", one_has_it(*(of_a_key(each, strict=True) for each in (JOB, OTHER_JOB))),
    [doing("worker", requeue(FIRST)), doing("first", LOOK)], goes_to(JOB),
)  # fmt: skip
revived = Scenario(
    "hand_over × revive × succeed", ended,
    [doing("client", revive()), doing("worker", succeed(FIRST, job_id=OTHER_JOB)), doing("first", LOOK)],
    goes_to(JOB),
)  # fmt: skip


@named(62)
@pytest.mark.parametrize(
    "raced",
    [ends, cancelled, claimed, reclaimed, timed_out, crashed, retried, kept, revived],
    ids=with_names,
)
def test_a_turn_goes_on_or_stays_and_is_one(race: Race, raced: Scenario) -> None:
    race(raced, share=share_of(raced))


NOBODY_ARRIVES = Cut(
    "arrive",
    ("AS come (gate)", "AS come (gate) WHERE false"),
    ("FROM json_each(:gates) AS come", "FROM json_each(:gates) AS come WHERE 0"),
)
ANOTHER = "SELECT 'key:another'"


def untold(query: str, by: str) -> Cut:
    """It is told to another gate that a turn is free at this one."""
    in_sqlite = "ended" if by == "ended" else "job"
    return Cut(
        query,
        (f"SELECT 'key:' || {by}.exclusive", ANOTHER),
        (f"SELECT 'key:' || {in_sqlite}.exclusive", ANOTHER),
    )


@named(62)
@pytest.mark.parametrize(
    ("raced", "cut"),
    [
        (ends, untold("succeed", "ended")),
        (cancelled, untold("archive", "ended")),
        (timed_out, untold("time_out", "moved")),
        (crashed, untold("crash", "moved")),
        (retried, untold("requeue", "moved")),
        (
            revived,
            Cut(
                "revive",
                ("WHERE job.exclusive IS NOT NULL OR job.limits IS NOT NULL\n)", "WHERE false\n)"),
                ("WHERE revived.exclusive IS NOT NULL OR revived.limits IS NOT NULL", "WHERE 0"),
            ),
        ),
    ],
    ids=lambda each: each.name if isinstance(each, Scenario) else each.query,
)
def test_a_turn_is_forgotten_where_nobody_tells(race: Race, raced: Scenario, cut: Cut) -> None:
    race.turns_red(raced, cut)


ONLY_RUNNING = Cut(
    "count_turns", (HOLDERS, "AND holder.state = 'running'"), (HOLDERS, "AND holder.state = 'running'")
)
ONLY_QUEUED = Cut(
    "count_turns", (HOLDERS, "AND holder.state = 'queued'"), (HOLDERS, "AND holder.state = 'queued'")
)


@named(62)
@pytest.mark.parametrize(
    ("raced", "cut"),
    [(claimed, ONLY_RUNNING), (claimed, ONLY_QUEUED), (reclaimed, ONLY_RUNNING), (kept, ONLY_RUNNING)],
    ids=["claimed, queued ones uncounted", "claimed, running ones uncounted", "reclaimed", "strict"],
)
def test_who_is_not_counted_is_run_beside(race: Race, raced: Scenario, cut: Cut) -> None:
    race.turns_red(raced, cut)


# A queue is paused.


def pausing() -> Script:
    """Pauses the queue of the first, and looks."""
    yield pause_queue("mail", actor="ada")
    handed = yield LOOK
    return [each.id for each in handed.queued]


def nobody_of_a_paused_queue_is_called(story: Story) -> None:
    assert JOB not in story.results["operator"], "a job of a paused queue was given the turn"
    story.run(resume_queue("mail"))
    story.run(LOOK)
    assert len(turned(story)) == 1


paused = Scenario(
    "hand_over × pause × hand_over",
    waiting(of_a_key(JOB), of_a_key(OTHER_JOB, queue="post")),
    [acting("operator", pausing), doing("first", HAND_OVER)],
    nobody_of_a_paused_queue_is_called,
)


@named(62)
def test_a_paused_queue_is_passed_over(race: Race) -> None:
    race(paused, share=share_of(paused))


@named(62)
def test_a_paused_queue_blocks_its_key_where_nobody_looks(race: Race) -> None:
    race.turns_red(paused, Cut("find_turns", *[("queue.paused_at IS NOT NULL", "queue.name = ''")] * 2))
