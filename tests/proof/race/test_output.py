"""Races of what a running job emits: a stale attempt adds nothing, and who has read the end has read all."""

from __future__ import annotations

import pytest

from fencerow.db.run import Operation
from fencerow.output import storing
from fencerow.output.model import ChunkGroup, offset_of
from fencerow_proof.arena.actor import Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, JOB, SECOND, acting, claim, requeue, succeed, with_running


def emit(number: int) -> Operation[bool]:
    group = ChunkGroup(last=offset_of(1, number), attempt=1, chunks=1, data=f'["{number}"]')
    return storing.write(JOB, group, holder=FIRST)


def read() -> Operation[storing.Output | None]:
    return storing.read_output(JOB, 0, limit=10)


def offsets(found: storing.Output | None) -> list[int]:
    assert found is not None
    return [group.last for group in found.groups]


def claimed_again() -> Script:
    """The worker has handed the job back, though a thread of its handler runs on."""
    yield requeue(FIRST, kind="released")
    if not (yield claim(SECOND)):
        return None
    return offsets((yield read()))


def the_old_part_is_over(story: Story) -> None:
    seen = story.results["second"]
    if seen is not None:
        assert offsets(story.run(read())) == seen, "a stale attempt has added to its part"


def emitting_and_ending() -> Script:
    yield emit(1)
    yield emit(2)
    yield succeed(FIRST)


def following() -> Script:
    found = yield read()
    return found.job.is_final, offsets(found)


def who_looks_too_late() -> Script:
    """A control: how the job stands is read behind its output."""
    found = yield read()
    standing = (yield storing.emitting([JOB]))[JOB]
    return standing.is_final, offsets(found)


def the_end_comes_with_all(story: Story) -> None:
    is_final, seen = story.results["reader"]
    assert not is_final or len(seen) == 2, f"the reader has seen the end, and of the output only {seen}"


stale = Scenario(
    "emit × requeue × claim", with_running(),
    [doing("worker", emit(1)), acting("second", claimed_again)], the_old_part_is_over,
)  # fmt: skip
ending = Scenario(
    "emit and end × read", with_running(),
    [acting("worker", emitting_and_ending), acting("reader", following)], the_end_comes_with_all,
)  # fmt: skip
late = Scenario(
    "emit and end × read", with_running(),
    [acting("worker", emitting_and_ending), acting("reader", who_looks_too_late)], the_end_comes_with_all,
)  # fmt: skip


@named(90)
@pytest.mark.parametrize("raced", [stale, ending], ids=lambda raced: raced.name)
def test_output_is_complete_and_of_whoever_holds_the_job(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(90)
@in_modes("held")
def test_a_stale_attempt_emits_without_the_lock(race: Race) -> None:
    race.turns_red(stale, Cut("write_output", ("FOR SHARE", "")))


@named(90)
def test_the_last_of_it_is_missed_by_who_looks_too_late(race: Race) -> None:
    race.breaks(late, "how the job stands is read last")
