"""Races of a turn that goes back, because its queue is paused or nobody claims it, while others claim or hand over.

That no key has more turns than it allows is an invariant: it is looked at after each order of every race.
"""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.state import FINAL, State
from fencerow.core.store import store
from fencerow.operators.queues import pause_queue
from fencerow.turns import handing
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, JOB, OTHER_JOB, cancel, claim, of_a_key, register, state

CLAIM_S = 60.0
OF_PAUSED = handing.take_turns_back(["key:k"], unclaimed_s=None)
UNCLAIMED = handing.take_turns_back(["key:k"], unclaimed_s=CLAIM_S)
LOOK = handing.hand_over(["key:k"])
PAUSE = pause_queue("mail", actor="ada")


def one_has_it(unclaimed: bool) -> Any:
    """A setup: the first has the turn, and a job of another queue waits. No arrival is left."""

    def setup() -> Script:
        yield register(FIRST)
        yield store.submit_gated([of_a_key(JOB), of_a_key(OTHER_JOB, queue="else")])
        yield handing.hand_over()
        if unclaimed:
            yield later(CLAIM_S + 1)
            yield register(FIRST)  # its lease is over by now

    return setup


def one_winner(back: str) -> Any:
    """A check: the job was claimed or taken back, and what was told is enough to give a free turn."""

    def check(story: Story) -> None:
        claimed = bool(story.results.get("worker"))
        result = story.results[back]
        assert isinstance(result, list), f"the table itself had to refuse it: {result}"
        taken = JOB in result
        assert not (claimed and taken), "a running job lost its turn"
        story.run(handing.hand_over())
        found = state(story)
        assert found == State.RUNNING or found in FINAL or not claimed
        if found == State.WAITING or found in FINAL:
            assert state(story, OTHER_JOB) == State.QUEUED, "a turn is free, and nobody looks"

    return check


def goes_to_the_other_queue(story: Story) -> None:
    story.run(handing.hand_over())
    assert (state(story), state(story, OTHER_JOB)) == (State.WAITING, State.QUEUED)


paused = Scenario(
    "pause × claim × hand_over",
    one_has_it(unclaimed=False),
    [doing("pause", PAUSE, OF_PAUSED), doing("worker", claim(FIRST)), doing("hand", LOOK)],
    one_winner("pause"),
)
unclaimed = Scenario(
    "a turn taken back × claim × cancel",
    one_has_it(unclaimed=True),
    [doing("sweep", UNCLAIMED), doing("worker", claim(FIRST)), doing("client", cancel())],
    one_winner("sweep"),
)
two_sweeps = Scenario(
    "a turn taken back × taken back × hand_over",
    one_has_it(unclaimed=True),
    [doing("sweep", UNCLAIMED), doing("other", UNCLAIMED), doing("hand", LOOK)],
    goes_to_the_other_queue,
)
ALL = (paused, unclaimed, two_sweeps)


@named(64)
@pytest.mark.parametrize("raced", ALL, ids=lambda raced: raced.name)
def test_a_turn_is_used_or_goes_to_another_queue(race: Race, raced: Scenario) -> None:
    race(raced, share=0.4)


# The same guard more than once: the jobs are locked as they were found, and what moves them says from which state.
ITS_TURN_CAME = "COALESCE(turned.turned_at, turned.submitted_at)"
NO_GUARD = (
    Cut(
        "find_unused_turns",
        ("holder.state = 'queued'", "holder.state IN ('queued', 'running')"),
        ("holder.state = 'queued'", "holder.state IN ('queued', 'running')"),
    ),
    Cut(
        "find_unused_turns",
        ("WHERE turned.state IS NOT DISTINCT FROM 'queued'", "WHERE turned.state IN ('queued', 'running')"),
        ("WHERE +turned.state = 'queued'", "WHERE turned.state IN ('queued', 'running')"),
    ),
    Cut(
        "find_unused_turns",
        (f"AND COALESCE(turned.claimed_at < {ITS_TURN_CAME}, true)", ""),
        (f"AND COALESCE(turned.claimed_at < {ITS_TURN_CAME}, 1)", ""),
    ),
    Cut(
        "take_turns_back",
        ("AND job.state IS NOT DISTINCT FROM 'queued'", "AND job.state IN ('queued', 'running')"),
        ("  AND +state = 'queued'\n", "  AND state IN ('queued', 'running')\n"),
    ),
)


@named(64)
@pytest.mark.parametrize("raced", [paused, unclaimed], ids=lambda raced: raced.name)
def test_a_running_job_loses_its_turn_without_the_guards(race: Race, raced: Scenario) -> None:
    race.turns_red(raced, *NO_GUARD)


@named(64)
def test_a_turn_is_forgotten_where_nobody_tells_that_it_went_back(race: Race) -> None:
    race.turns_red(
        paused,
        Cut(
            "take_turns_back",
            ("SELECT 'key:' || moved.exclusive", "SELECT 'key:another'"),
            ("SELECT 'key:' || job.exclusive\n", "SELECT 'key:another'\n"),
        ),
    )


@named(64)
def test_a_turn_comes_back_at_once_where_its_queue_is_not_passed_over(race: Race) -> None:
    race.turns_red(
        two_sweeps,
        Cut(
            "find_turns",
            ("AND passed.until > (SELECT fencerow.now())", "AND false"),
            ("AND passed.until > fencerow.now()", "AND 0"),
        ),
    )
