"""The loop under every exploration, and what tells it which orders come to the same: without any database."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pytest

from fencerow_proof.explorer.footprint import Footprint
from fencerow_proof.explorer.orders import Choose, play_all, play_reduced, replay
from fencerow_proof.explorer.playing import play
from fencerow_proof.explorer.rings import ring
from fencerow_proof.explorer.trace import Trace
from fencerow_proof.explorer.violation import Violation

A, B = (Footprint(writes=frozenset({table})) for table in "ab")


class Writers:
    """Actors that write tables one after the other; those of `lock` wait until the first of them is done."""

    def __init__(
        self, steps: Mapping[str, Sequence[Footprint]], lock: Sequence[str] = (), free: Sequence[str] = ()
    ) -> None:
        self.left = {name: list(each) for name, each in steps.items()}
        self.touched: Footprint | None = None
        self.unblocked = 0
        self._lock = list(lock)
        self._free = free
        self._trace = Trace()

    @property
    def is_over(self) -> bool:
        return not any(self.left.values())

    @property
    def state(self) -> Hashable:
        return self._trace.state()

    def options(self) -> list[str]:
        return [name for name, steps in self.left.items() if steps and name not in self._lock]

    def forced(self, options: Sequence[str]) -> str | None:
        return next((name for name in options if name in self._free), None)

    def step(self, name: str) -> None:
        self.touched = self.left[name].pop(0)
        self._trace.note(name, self.touched)
        if name == "broken":
            raise Violation("it is broken", name, [f"{name}: breaks"], "replay(…)")

    def unblock(self) -> None:
        self.unblocked += 1
        self._lock.pop()


def orders(**steps: Sequence[Footprint]) -> int | None:
    """How many orders are told apart."""

    def once(choose: Choose) -> list[str]:
        order: list[str] = []
        play(Writers(steps), choose, order)
        return order

    return play_reduced(once, limit=1000)


def test_steps_that_meet_are_played_both_ways_and_others_once() -> None:
    assert orders(one=[A], two=[A]) == 2
    assert orders(one=[A], two=[B]) == 1
    assert orders(one=[A, B], two=[A, B]) == 4
    assert orders(one=[A, A], two=[A, A]) == 6, "all of them"
    assert orders(one=[A, A], two=[B, B], three=[A]) == 3


def test_who_meets_nobody_goes_without_a_choice() -> None:
    asked: list[list[str]] = []

    def choose(options: Sequence[str], state: Hashable = None, touched: Footprint | None = None) -> str:
        asked.append(list(options))
        return options[0]

    order: list[str] = []
    play(Writers({"one": [A], "two": [B, B]}, free=["two"]), choose, order)

    assert order == ["two", "two", "one"] and asked == [["one"]]


def test_where_nobody_may_go_somebody_is_unblocked() -> None:
    turns = Writers({"one": [A], "two": [A]}, lock=["one", "two"])
    order: list[str] = []

    play(turns, lambda options, *_, **__: options[0], order)

    assert (turns.unblocked, order) == (2, ["two", "one"])


def test_an_order_that_breaks_is_told_whole_and_broken_again() -> None:
    order: list[str] = []

    def once(choose: Choose) -> list[str]:
        order.clear()
        play(Writers({"one": [A], "broken": [A]}), choose, order)
        return order

    with pytest.raises(Violation, match="it is broken") as caught:
        play_all(once, limit=10)
    found = list(order)
    with pytest.raises(Violation):
        replay(once, found)

    assert found[-1] == "broken", "it has the step that raised"
    assert str(caught.value) == (
        "it is broken\n\nin this order:\n    1  broken: breaks\n\nto play this order alone: replay(…)"
    )


def test_a_ring_has_those_who_wait_in_a_circle_and_nobody_else() -> None:
    assert ring({1: {2}, 2: {3}}) == set()
    assert ring({1: {2}, 2: {1}}) == {1, 2}
    assert ring({1: {2}, 2: {3}, 3: {2}}) == {2, 3}, "the first waits for them, and ends when they do"
    assert ring({1: {2, 4}, 2: {1}, 4: {5}}) == {1, 2}, (
        "the fourth stands in the way of one, and is in no circle"
    )
