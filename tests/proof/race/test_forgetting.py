"""Races of what retention forgets of gates and limits, and whoever comes to them meanwhile."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.limits import Limit, Rate
from fencerow.limits.limits import define
from fencerow.limits.named import forget_states
from fencerow.turns import handing, looks
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    SECOND,
    claim,
    new_job,
    of_a_key,
    register,
    state,
    succeed,
)

FORGET = looks.forget_gates("", limit=10)
HAND_OVER = handing.hand_over()
LATER_S = 60.0


def known(*jobs: Any) -> Any:
    """A setup: the gate has a row, and these wait there. No arrival is left."""

    def setup() -> Script:
        yield register(FIRST)
        yield handing.hand_over(["key:k"])
        if jobs:
            yield store.submit_gated(list(jobs))
            yield HAND_OVER

    return setup


def is_given_in_time(story: Story) -> None:
    """What is known is enough: no sweep looks at the gate."""
    story.run(HAND_OVER)
    story.run(later(LATER_S + 1))
    story.run(HAND_OVER)
    assert state(story) == "queued", "its time has come, and nobody looks"


def one_has_the_turn(story: Story) -> None:
    for _ in range(2):
        story.run(HAND_OVER)
    turned = [each for each in (JOB, OTHER_JOB) if state(story, each) in ("queued", "running")]
    assert len(turned) == 1, f"{turned} have a turn"


for_later = Scenario(
    "forget_gates × submit for later × hand_over",
    known(),
    [
        doing("retention", FORGET),
        doing("client", store.submit_gated([of_a_key(JOB, delay_s=LATER_S)])),
        doing("hand", HAND_OVER),
    ],
    is_given_in_time,
)
two_hands = Scenario(
    "forget_gates × submit × hand_over",
    known(),
    [
        doing("retention", FORGET),
        doing("client", store.submit_gated([of_a_key(JOB), of_a_key(OTHER_JOB)])),
        doing("hand", handing.hand_over(["key:k"])),
    ],
    one_has_the_turn,
)


def one_ended(story: Story) -> None:
    story.run(HAND_OVER)
    assert state(story, OTHER_JOB) == "queued", "a turn is free, and nobody looks"


def one_runs() -> Script:
    yield from known(of_a_key(JOB))()
    yield claim(FIRST)


with_an_end = Scenario(
    "forget_gates × succeed × submit",
    one_runs,
    [
        doing("retention", FORGET),
        doing("worker", succeed(FIRST)),
        doing("client", store.submit_gated([of_a_key(OTHER_JOB)])),
    ],
    one_ended,
)


def test_who_comes_to_a_gate_that_is_forgotten_gets_a_turn(race: Race) -> None:
    for scenario in (for_later, two_hands, with_an_end):
        race(scenario, share=0.3)


# The same guard more than once: who waits is looked at, and when they are due stands in the row.
WAITS = ("waiting.gate = gate.name AND waiting.state = 'waiting'", "false")
DUE = ("gate.next_at IS NULL", "true")
NO_GUARD = tuple(
    Cut(query, cut, cut) for query in ("lock_idle_gates", "forget_gates") for cut in (WAITS, DUE)
)


def test_who_waits_for_its_time_is_forgotten_with_its_gate(race: Race) -> None:
    race.turns_red(for_later, *NO_GUARD)


# What is remembered of a key under a limit.

AGE_S = 86_400.0
PACED = Limit("tenant", rate=Rate(1, per_s=60), per_key=True)
GATE = ["limit:tenant/a"]


def long_idle() -> Script:
    """One started long ago under the limit, and two wait."""
    yield register(FIRST)
    yield define(PACED, actor=None, reason=None)
    yield store.submit_gated([new_job("00000000-0000-4000-8000-000000000009", limits=("tenant/a",))])
    yield HAND_OVER
    yield claim(FIRST)
    yield later(AGE_S + 1)
    yield register(SECOND)
    yield store.submit_gated([new_job(each, limits=("tenant/a",)) for each in (JOB, OTHER_JOB)])


def one_started(story: Story) -> None:
    story.run(claim(SECOND))  # or nobody else would get a turn whatever the rate
    story.run(handing.hand_over(GATE))  # as the sweep looks, though no time was said to have come
    one_has_the_turn(story)


forgotten = Scenario(
    "forget_states × hand_over under a rate",
    long_idle,
    [doing("retention", forget_states("", age_s=AGE_S, limit=10)), doing("hand", handing.hand_over(GATE))],
    one_started,
)


def test_a_start_is_remembered_while_old_ones_are_forgotten(race: Race) -> None:
    race(forgotten)


@in_modes("plain", "held")
def test_a_rate_is_passed_where_what_is_forgotten_may_be_new(race: Race) -> None:
    race.turns_red(
        forgotten,
        Cut(
            "forget_limit_states",
            ("AND known.state = idle.pair ->> 1", ""),
        ),
    )
