"""The orders that an explorer plays: each once, all of them, and any of them again."""

from __future__ import annotations

import pytest

from fencerow_proof.explorer.orders import Choose, OrderImpossible, play_all, play_reduced, replay


class Steps:
    """Actors that take a number of steps each and never wait."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts
        self.played: list[str] = []

    def __call__(self, choose: Choose) -> list[str]:
        left, order = dict(self.counts), list[str]()
        while any(left.values()):
            order.append(choose([name for name, count in left.items() if count]))
            left[order[-1]] -= 1
        self.played.append("".join(order))
        return order


def test_a_small_tree_is_played_whole() -> None:
    steps = Steps(a=2, b=2, c=1)

    counted = play_all(steps, limit=100)

    assert counted.played == counted.total == len(set(steps.played)) == 30


def test_a_large_one_is_sampled_and_its_size_estimated() -> None:
    steps = Steps(a=6, b=6, c=6)

    counted = play_all(steps, limit=300)

    assert counted.played <= 300
    assert counted.total == pytest.approx(17_153_136, rel=0.25)  # 18! / (6! 6! 6!)


def test_prefixes_that_come_to_the_same_are_gone_on_from_once() -> None:
    """Three counters that do not see each other: whoever went first is forgotten."""
    played: list[str] = []

    def play(choose: Choose) -> list[str]:
        left, order = {"a": 3, "b": 3, "c": 3}, list[str]()
        while any(left.values()):
            order.append(choose([name for name, count in left.items() if count], tuple(left.values())))
            left[order[-1]] -= 1
        played.append("".join(order))
        return order

    assert play_reduced(play, limit=300) == 3, "only who takes the last step makes a difference"
    assert len(played) == 3
    assert play_all(play, limit=300).reduced
    assert play_reduced(play, limit=1) is None


def test_the_same_seed_plays_the_same_orders() -> None:
    one, other = Steps(a=6, b=6), Steps(a=6, b=6)

    play_all(one, limit=50, seed=7)
    play_all(other, limit=50, seed=7)

    assert one.played == other.played


def test_an_order_is_played_again_by_its_names() -> None:
    steps = Steps(a=2, b=1)

    replay(steps, ["a", "b", "a"])

    assert steps.played == ["aba"]


def test_an_order_that_cannot_be_is_refused() -> None:
    with pytest.raises(OrderImpossible, match="'b' cannot go next; only a can"):
        replay(Steps(a=2, b=1), ["b", "b", "a"])
