"""Races of relays that take: one reads a part, who was replaced stores nothing, a moved position stays moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.errors import RelayPartLost
from fencerow.relay import parts, relays
from fencerow.relay.parts import Intake, PartLease, Unread
from fencerow_proof.arena.actor import Actor, Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race
from tests.proof.race.people import FIRST, LEASE_S, SECOND, THIRD, new_job, register, uid

RELAY = "books"
BAD = Unread("1", None, None, "ew==", 1, "no JSON")


def alive(holder: str) -> Any:
    return relays.renew(RELAY, holder=holder, name="w", lease_s=LEASE_S, trouble=None)


def one_reader() -> Script:
    """A part of one relay, in the hands of the first process."""
    yield relays.know(RELAY, "in", "kafka host topic t")
    yield alive(FIRST)
    yield parts.make_parts(RELAY, 1)
    held = yield parts.hold_parts(RELAY, holder=FIRST)
    generation = yield parts.begin(held.leases[0], "0", anew=True)
    return replace(held.leases[0], position="0", generation=generation)


def intake(number: int) -> Intake:
    """One message: a job, and beside it one that could not be read."""
    return Intake("2", 2, [Submission(new_job(uid(number)))], (), [BAD])


def taking(number: int) -> Any:
    """Stores two messages with the position behind them."""

    def script(lease: PartLease) -> Script:
        try:
            yield parts.take(lease, intake(number))
        except RelayPartLost:
            return "lost"
        return "stored"

    return script


def taking_over(holder: str, number: int) -> Any:
    """Finds the first process dead, and reads on where it stood."""

    def script(_: PartLease) -> Script:
        yield alive(holder)
        yield later(LEASE_S + 1)
        yield alive(holder)
        held = yield parts.hold_parts(RELAY, holder=holder)
        if not held.leases:
            return "not taken"
        if held.leases[0].position != "0":
            return "nothing to read"
        return (yield from taking(number)(held.leases[0]))

    return script


def once(story: Story) -> None:
    """Both messages were stored once, together, and the part stands behind them."""
    (part,) = story.run(relays.parts_of(RELAY))
    kept = story.run(relays.unread(limit=9))
    jobs = live_jobs(story)

    assert part.position == "2", f"nobody stored anything: {story.results}"
    assert len(jobs) == 1 == len(kept), f"{len(jobs)} jobs, {len(kept)} unread: {story.results}"
    assert (part.taken, part.unread) == (1, 1)


def live_jobs(story: Story) -> list[Any]:
    story.run(register(uid(190)))
    marks = [store.Mark(0)]
    found: list[Any] = story.run(
        store.claim("mail", marks, holder=uid(190), names=["send"], limit=99, margin_s=10.0)
    )
    return found


takeover = Scenario(
    "take × takeover of the part, take",
    one_reader,
    [Actor("first", taking(1)), Actor("second", taking_over(SECOND, 2))],
    once,
)
takeovers = Scenario(
    "take × takeover × takeover",
    one_reader,
    [
        Actor("first", taking(1)),
        Actor("second", taking_over(SECOND, 2)),
        Actor("third", taking_over(THIRD, 3)),
    ],
    once,
)
ANYBODYS = Cut(
    "move_relay_part",
    (
        (
            "AND held.holder = CAST(:holder AS uuid)\n"
            "  AND held.fence = CAST(:fence AS bigint)\n"
            "  AND held.position = :old"
        ),
        "",
    ),
    ("AND holder = :holder\n  AND fence = :fence\n  AND position = :old", ""),
)


def test_what_two_readers_of_a_part_have_read_is_stored_once(race: Race) -> None:
    race(takeover)


def test_two_readers_without_a_guard(race: Race) -> None:
    race.turns_red(takeover, ANYBODYS)


def test_of_two_who_take_a_dead_ones_part_one_has_it(race: Race) -> None:
    race(takeovers)


def test_two_who_take_a_part_without_a_guard(race: Race) -> None:
    race.turns_red(takeovers, ANYBODYS)


def moving(_: PartLease) -> Script:
    """An operator moves the part while its reader is at work."""
    yield relays.set_position(RELAY, 0, "100", again=True)


def stays_moved(story: Story) -> None:
    (part,) = story.run(relays.parts_of(RELAY))

    assert part.position == "100" and part.generation == 2, "the reader moved it back"
    assert len(live_jobs(story)) == (1 if story.results["first"] == "stored" else 0)


move = Scenario(
    "take × move by an operator", one_reader, [Actor("first", taking(1)), Actor("ada", moving)], stays_moved
)


def test_a_position_that_somebody_set_is_not_moved_by_who_read_before(race: Race) -> None:
    race(move)


def test_a_move_without_a_guard(race: Race) -> None:
    race.turns_red(move, ANYBODYS)


def stopping(lease: PartLease) -> Script:
    try:
        yield parts.stop(lease, "gone")
    except RelayPartLost:
        return "lost"
    return "stopped"


def stops_or_goes_on(story: Story) -> None:
    (part,) = story.run(relays.parts_of(RELAY))

    if part.stopped is not None:
        assert part.position == "0" and story.results["first"] == "lost", (
            "it was read on after it had stopped"
        )
        assert not live_jobs(story)
    else:
        once(story)


stop = Scenario(
    "take × stop", one_reader, [Actor("first", taking(1)), Actor("same", stopping)], stops_or_goes_on
)
STOPPED = Cut("move_relay_part", ("AND held.stopped IS NULL", ""), ("AND stopped IS NULL", ""))


def test_a_part_that_has_stopped_is_not_read_on(race: Race) -> None:
    race(stop)


def test_a_stopped_part_without_a_guard(race: Race) -> None:
    race.turns_red(stop, STOPPED)


def paused_once(story: Story) -> None:
    assert sorted([story.results["ada"], story.results["bob"]]) == [False, True]


pauses = Scenario(
    "pause × pause",
    one_reader,
    [doing("ada", relays.pause(RELAY)), doing("bob", relays.pause(RELAY))],
    paused_once,
)


def test_of_two_who_pause_a_relay_one_is_told_that_he_did(race: Race) -> None:
    race(pauses)
