"""Which chores a wake-up is put to: those that hear its kind, and each of them where wake-ups may have been missed."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from fencerow.core.background.chores import Chores
from fencerow.core.chore import Chore
from fencerow.core.model.wakeup import Arrived, JobsEnded, Queued, WakeUp
from fencerow.core.telemetry import Telemetry
from fencerow.events.chore import EventsChore
from fencerow.flows.standing import flow_chore
from fencerow.flows.waker import FlowWaker
from fencerow.saga.teller import Teller
from fencerow.schedules.chores import TickChore
from fencerow.turns.hander import Hander

END = JobsEnded(("a",))


class Noting(Chore):
    def __init__(self, name: str, hears: tuple[type, ...]) -> None:
        self.name = name
        self.hears = hears
        self.asked: list[WakeUp | None] = []

    async def tick(self) -> float:
        return 60.0

    def is_for(self, message: WakeUp | None) -> bool:
        self.asked.append(message)
        return False


class Underived:
    """A user's, which cannot say what it hears."""

    name = "underived"

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def tick(self) -> float:
        return 60.0

    def is_for(self, message: object) -> bool:
        self.asked.append(message)
        return False


def test_an_end_asks_those_that_hear_ends_alone() -> None:
    ends, turns, none, given, late = (
        Noting("ends", (Queued, JobsEnded)),
        Noting("turns", (Arrived,)),
        Noting("none", ()),
        Underived(),
        Noting("late", (JobsEnded,)),
    )
    chores = Chores([ends, turns, none, given], Telemetry(), lambda _: None)
    chores.tell(END)
    chores.add([late])
    for message in (END, Arrived(), None):
        chores.tell(message)

    assert ends.asked == [END, END, None]
    assert turns.asked == [Arrived(), None]
    assert none.asked == [None]
    assert given.asked == [END, END, Arrived(), None]
    assert late.asked == [END, None], "a chore that comes later is asked about kinds that were told of before"


@pytest.mark.parametrize("kind", [EventsChore, FlowWaker, Hander, Teller, TickChore])
def test_each_chore_of_a_wing_hears_kinds_of_wake_ups(kind: type[Chore]) -> None:
    assert kind.hears and set(kind.hears) <= set(get_args(WakeUp))
    assert kind.is_for is not Chore.is_for


def test_no_chore_is_asked_for_what_it_never_hears() -> None:
    def kinds(of: type[Any]) -> list[type[Any]]:
        return [of, *(each for below in of.__subclasses__() for each in kinds(below))]

    deaf = [each for each in kinds(Chore) if not each.hears and each.is_for is not Chore.is_for]

    assert [each.__name__ for each in deaf if each.__module__.startswith("fencerow.")] == [
        "Dormant",
        "FlowChore",
    ]


def test_the_chore_of_flows_hears_from_the_first_on_what_it_hears_once_it_is_loaded() -> None:
    chore = flow_chore(lambda: pytest.fail("an engine was looked up"), Telemetry())

    assert set(chore.hears) >= set(FlowWaker.hears)
    assert not chore.is_for(END), "no flow is known, and none is expected"
    assert chore.is_for(None)
