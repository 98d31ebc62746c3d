"""What an order makes of what a worker serves: worked out from plain values, the same each time it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.wanted import (
    Leave,
    OrderedChange,
    SlotGroup,
    SlotGroupNow,
    Stated,
    Wanted,
    changed,
    wanted_of,
)
from fencerow.errors import InvalidInput, OrderRefused


def wanted(*groups: tuple[str, int], **more: Any) -> Wanted:
    return Wanted(tuple(SlotGroup(tuple(queues.split("+")), slots) for queues, slots in groups), **more)


OWN = wanted(("mail", 5), ("docs", 2))
SHARED = wanted(("mail+docs", 5))


@pytest.mark.parametrize(
    ("now", "change", "then"),
    [
        (SHARED, OrderedChange(slots=9), wanted(("mail+docs", 9))),
        (OWN, OrderedChange(queues={"mail": 9}), wanted(("mail", 9), ("docs", 2))),
        (OWN, OrderedChange(queues={"new": 1}), wanted(("mail", 5), ("docs", 2), ("new", 1))),
        (SHARED, OrderedChange(queues={"new": None}), wanted(("mail+docs+new", 5))),
        (SHARED, OrderedChange(queues={"mail": None}), SHARED),
        (SHARED, OrderedChange(queues={"mail": 3}), wanted(("docs", 5), ("mail", 3))),
        (wanted(("mail", 5)), OrderedChange(queues={"mail": None}), wanted(("mail", 5))),
        (OWN, OrderedChange(remove=["mail"]), wanted(("docs", 2))),
        (OWN, OrderedChange(remove=["mail"], slots=7), wanted(("docs", 7))),
        (OWN, OrderedChange(remove=["unserved"]), OWN),
        (OWN, OrderedChange(paused=True), wanted(("mail", 5), ("docs", 2), paused=True)),
        (
            wanted(("mail", 5), paused=True),
            OrderedChange(queues={"mail": 6}),
            wanted(("mail", 6), paused=True),
        ),
        (OWN, OrderedChange(leave=Leave(60.0)), wanted(("mail", 5), ("docs", 2), leave=Leave(60.0))),
        (OWN, OrderedChange(), OWN),
    ],
)
def test_a_change_leads_there_and_once_more_changes_nothing(
    now: Wanted, change: OrderedChange, then: Wanted
) -> None:
    assert changed(now, change) == then
    if not change.remove or change.slots is None:
        assert changed(then, change) == then


@pytest.mark.parametrize(
    "change",
    [
        OrderedChange(slots=3),  # each has its own
        OrderedChange(queues={"new": None}),  # with whom would it share?
        OrderedChange(remove=["mail", "docs"]),
        OrderedChange(queues={"mail": 0}),
        OrderedChange(queues={"mail": 10_001}),
        OrderedChange(queues={"mail": True}),
        OrderedChange(queues={"": 1}),
        OrderedChange(queues={"a\nb": 1}),
        OrderedChange(queues={"mail": 1}, remove=["mail"]),
        OrderedChange(leave=Leave(-1.0)),
        OrderedChange(leave=Leave(float("nan"))),
        OrderedChange(leave=Leave(float("inf"))),
    ],
)
def test_what_cannot_be_is_refused(change: OrderedChange) -> None:
    with pytest.raises(InvalidInput):
        changed(OWN, change)


@pytest.mark.parametrize(
    ("first", "second", "then"),
    [
        (None, 60.0, 60.0),
        (60.0, None, 60.0),
        (60.0, 5.0, 5.0),
        (5.0, 60.0, 5.0),
        (60.0, 0.0, 0.0),
        (None, None, None),
    ],
)
def test_leaving_can_only_be_made_sooner(
    first: float | None, second: float | None, then: float | None
) -> None:
    leaving = changed(OWN, OrderedChange(leave=Leave(first)))
    assert changed(leaving, OrderedChange(leave=Leave(second))).leave == Leave(then)
    with pytest.raises(OrderRefused, match="is leaving"):
        changed(leaving, OrderedChange(paused=False))


def test_without_an_order_what_is_stated_holds() -> None:
    stated = Stated(0, (SlotGroupNow(("mail",), 5, running=3),), paused=False)
    assert wanted_of(None, stated) == wanted(("mail", 5))
    assert wanted_of(OWN, stated) is OWN
    assert wanted_of(None, Stated(0, (), leaving=True)).leave == Leave()
