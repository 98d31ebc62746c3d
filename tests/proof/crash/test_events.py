"""Whatever dies at whatever point of a verb of the event bus: it happened whole or not at all, and goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fencerow.db.run import Operation
from fencerow.events import asides, consumers, lag
from fencerow.events.consumers import Aside
from fencerow.events.groups import GroupStart, groups, make_group, remove_group, replay
from fencerow.events.sequencer import sequence
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case, Unrecovered, crash_everywhere
from tests.proof.race.people import FIRST, SECOND
from tests.proof.race.test_events import GROUP, READER, data_of, effect, hold, published, read

TWO = ("e1", "e2")


def log_with_group() -> Script:
    """Two events that have their places, and a reader."""
    yield published(*TWO, key="k")
    yield sequence(None)
    yield make_group(GROUP, ["t"], partitions=1, start=GroupStart("beginning"))
    yield hold(FIRST)


def on_events(name: str, make: Callable[[list[consumers.Stored]], Operation[Any]]) -> Operation[Any]:
    """An operation on what the setup published: its places are known when it starts."""

    def steps() -> Any:
        page = yield from read(0).steps()
        return (yield from make(list(page.events)).steps())

    return Operation(name, steps)


def with_aside(*, parked: bool) -> Callable[[], Script]:
    def setup() -> Script:
        yield from log_with_group()
        yield on_events("put aside", lambda events: put_aside(events, parked=parked))
        yield later(1)

    return setup


def put_aside(events: list[consumers.Stored], *, parked: bool = False) -> Operation[None]:
    asides = [Aside(each.seq, each.id, each.key, 1, 0.0, parked, "{}") for each in events]
    return consumers.advance(READER, old=0, cursor=events[-1].seq, asides=asides)


def look(topic: str = "t", after: int = 0) -> Script:
    yield sequence(None)
    page = yield consumers.read_events(READER, [topic], after=after, partitions=1)
    return [data_of(each) for each in page.events]


def cursor() -> Script:
    (part,) = yield consumers.partitions(GROUP)
    return part.cursor


# --- what must be found, and what is done about it -----------------------------------------------


def all_or_nothing() -> Script:
    assert (yield from look()) in ([], [*TWO])


def every_event_has_its_place() -> Script:
    assert (yield from look()) == [*TWO]
    assert (yield sequence(None)).count == 0


def the_group_is_whole() -> Script:
    yield make_group(GROUP, ["t"], partitions=3)
    assert len((yield consumers.partitions(GROUP))) == 3


def the_reader_holds_all() -> Script:
    held = yield hold(FIRST)
    assert len(held.leases) == 1


def another_takes_over() -> Script:
    yield later(100)
    held = yield hold(SECOND)
    assert len(held.leases) == 1


def acknowledged_with_its_effect() -> Script:
    done = yield from look("effect")
    moved = yield from cursor()
    assert bool(done) == (moved > 0), f"effects {done}, cursor {moved}"


def passed_and_put_aside() -> Script:
    waiting = yield asides.waiting(READER)
    moved = yield from cursor()
    assert (waiting.count == 2) == (moved > 0) and waiting.count in (0, 2)


def ended_with_its_effect() -> Script:
    done = yield from look("effect")
    waiting = yield asides.waiting(READER)
    assert len(done) + waiting.count == 2, f"effects {done}, waiting {waiting.count}"


def kept() -> Script:
    waiting = yield asides.waiting(READER)
    parked = yield asides.parked(GROUP)
    assert waiting.count + len(parked) == 2


def replayed_as_one() -> Script:
    (group,) = yield groups()
    moved = yield from cursor()
    waiting = yield asides.waiting(READER)
    assert (group.generation == 2) == (moved == 0) == (waiting.count == 0)


def removed_whole() -> Script:
    known, parts = (yield groups()), (yield consumers.partitions(GROUP))
    assert bool(known) == bool(parts)


def trimmed_and_noted() -> Script:
    yield published("e3")
    assert (yield from look())[-1] == "e3"
    (behind,) = yield lag.lags(GROUP)
    assert behind.events == 1, "no place is given twice"


def case(
    name: str, setup: Callable[[], Script], operation: Operation[Any], react: Callable[[], Script]
) -> Case:
    return Case(name, setup, operation, react)


def nothing_before() -> Script:
    yield later(0)


def published_only() -> Script:
    yield published(*TWO)


def read_by_all() -> Script:
    yield from log_with_group()
    yield on_events("acknowledge", lambda events: consumers.advance(READER, old=0, cursor=events[-1].seq))
    yield later(100)


TRIM = lag.trim(age_s=10.0, unread_age_s=1000.0, told_s=10.0)
CASES = [
    case("publish", nothing_before, published(*TWO), all_or_nothing),
    case("sequence", published_only, sequence(None), every_event_has_its_place),
    case("make_group", published_only, make_group(GROUP, ["t"], partitions=3), the_group_is_whole),
    case("hold_partitions", log_with_group, hold(FIRST), the_reader_holds_all),
    case("hold_partitions, the reader gone", log_with_group, hold(FIRST), another_takes_over),
    case(
        "give_partitions",
        log_with_group,
        consumers.give_partitions(GROUP, [0], holder=FIRST),
        another_takes_over,
    ),
    case("leave_group", log_with_group, consumers.leave_group(GROUP, [0], holder=FIRST), another_takes_over),
    case(
        "advance with an effect",
        log_with_group,
        on_events(
            "e", lambda found: effect(found[0], READER, consumers.advance(READER, old=0, cursor=found[0].seq))
        ),
        acknowledged_with_its_effect,
    ),
    case("advance with asides", log_with_group, on_events("put aside", put_aside), passed_and_put_aside),
    case("try_event", log_with_group, consumers.try_event(READER, 1), another_takes_over),
    case(
        "try_aside",
        with_aside(parked=False),
        on_events("t", lambda found: asides.try_aside(READER, found[0].seq)),
        kept,
    ),
    case(
        "end_aside with an effect",
        with_aside(parked=False),
        on_events("e", lambda found: effect(found[0], READER, asides.end_aside(READER, found[0].seq))),
        ended_with_its_effect,
    ),
    case(
        "postpone_aside",
        with_aside(parked=False),
        on_events(
            "p",
            lambda found: asides.postpone_aside(READER, found[0].seq, delay_s=1, parked=True, error="{}"),
        ),
        kept,
    ),
    case(
        "hold_aside",
        with_aside(parked=False),
        on_events("p", lambda found: asides.hold_aside(READER, found[0].seq, delay_s=1)),
        kept,
    ),
    case("redrive", with_aside(parked=True), asides.redrive(GROUP), kept),
    case("replay", with_aside(parked=False), replay(GROUP, GroupStart("beginning")), replayed_as_one),
    case("remove_group", with_aside(parked=False), remove_group(GROUP), removed_whole),
    case("trim", read_by_all, TRIM, trimmed_and_noted),
    case("alarm", log_with_group, lag.alarm(GROUP), another_takes_over),
    case("calm", log_with_group, lag.calm(GROUP), another_takes_over),
    case("discard", with_aside(parked=False), asides.discard(GROUP), kept),
    case(
        "forget_dead_drainers",
        log_with_group,
        consumers.forget_dead_drainers(age_s=0.0),
        the_reader_holds_all,
    ),
]
BY_NAME = {each.name: each for each in CASES}


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
@pytest.mark.parametrize("name", BY_NAME)
def test_every_point_of_it_is_survived(
    name: str, mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    number, seconds = crash_everywhere(arenas[mode], BY_NAME[name])

    facts = {
        "scenario": f"crash in {name}",
        "mode": mode,
        "played": number,
        "total": number,
        "seconds": seconds,
    }
    record_property("crash", json.dumps(facts))


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
def test_an_effect_apart_from_its_acknowledgement_is_seen(mode: str, arenas: Mapping[str, Any]) -> None:
    """Control: the effect in a transaction of its own, before the acknowledgement."""

    def effect_alone(found: list[consumers.Stored]) -> Operation[Any]:
        return published(["e1", 1], topic="effect") if found else sequence(None)

    apart = case("apart", log_with_group, on_events("e", effect_alone), acknowledged_with_its_effect)
    with pytest.raises(Unrecovered):
        crash_everywhere(arenas[mode], apart)
