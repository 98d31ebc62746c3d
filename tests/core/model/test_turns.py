"""Turns between shares: each as many jobs in one turn as its weight says, from one claim to the next."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from fencerow.core.model.job import Claimed
from fencerow.core.model.lane import ANYBODYS
from fencerow.core.model.turns import LaneTurns, Ring, RingMember, RingPlace

RAW = msgspec.Raw(b"null")


def job(share: str, number: int) -> Claimed:
    return Claimed(
        f"{share}{number}", "send", "mail", 1, 0, number, False, 0, 0, 0, 3, 3, None, 0,
        RAW, RAW, None, None, None, share or None, share,
    )  # fmt: skip


class Lane:
    """The shares of a priority in memory, and a worker that claims from it. It looks before each claim, as after a
    hint, or only where it must (`hinted` false)."""

    def __init__(
        self, waiting: dict[str, int], weights: dict[str, int] | None = None, *, hinted: bool = True
    ) -> None:
        self.waiting = Counter(waiting)
        self.weights = weights or {}
        self.turns = LaneTurns(RingPlace())
        self.hinted = hinted
        self.statements = 0

    def ring(self, after: str, until: str, limit: int) -> Ring:
        names = sorted(share for share, count in self.waiting.items() if count)
        behind = [share for share in names if share > until] + [share for share in names if share <= until]
        begin = next(
            (number for number, share in enumerate(behind) if after != until and _past(share, after, until)),
            0 if after == until else len(behind),
        )
        part = behind[begin : begin + limit]
        last = part[-1] if part else after
        whole = len(part) < limit or last == until
        return Ring(tuple(RingMember(share, self.weights.get(share, 1)) for share in part), whole, last)

    def claim(self, wanted: int) -> str:
        found = ""
        if self.hinted:
            self.turns.restart(0)
        while wanted:
            if self.turns.wants_look(wanted):
                self.turns.looked(self.ring(self.turns.after, self.turns.until, wanted), anybodys=False)
            elif self.turns.is_over:
                break
            else:
                counts = {member.lane: count for member, count in self.turns.plan(wanted)}
                assert sum(counts.values()) == wanted
                taken = {share: min(count, self.waiting[share]) for share, count in counts.items()}
                self.waiting.subtract(taken)
                jobs = [job(share, number) for share, count in taken.items() for number in range(count)]
                in_turn, _ = self.turns.claimed(jobs)
                found += "".join(each.share or "-" for each in in_turn)
                wanted -= len(jobs)
                self.statements += 1
        return found


def _past(share: str, after: str, until: str) -> bool:
    return (share <= until, share) > (after <= until, after)


def slowly(waiting: dict[str, int], weights: dict[str, int]) -> str:
    """Job by job round the whole ring, as it is meant."""
    left, found = dict(waiting), ""
    while any(left.values()):
        for share in sorted(left):
            taken = min(left[share], weights.get(share, 1))
            left[share] -= taken
            found += share * taken
    return found


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_who_comes_with_ten_waits_for_ten_of_the_many(limit: int) -> None:
    lane = Lane({"a": 60})
    assert set(lane.claim(7)) == {"a"}
    lane.waiting["b"] = 10

    order = "".join(lane.claim(limit) for _ in range(24 // limit))

    assert Counter(order[:20]) == {"a": 10, "b": 10} and "aa" not in order[:20]


@pytest.mark.parametrize("limit", [1, 4, 7, 100])
def test_weights_hold_in_every_window(limit: int) -> None:
    lane = Lane({"a": 60, "b": 20}, {"a": 3})

    order = "".join(lane.claim(limit) for _ in range(80 // limit + 1))[:60]

    for begin in range(len(order)):
        for end in range(begin, len(order) + 1):
            of_a, of_b = order[begin:end].count("a"), order[begin:end].count("b")
            assert 3 * (of_b - 1) <= of_a <= 3 * (of_b + 1), (begin, end, order)


@pytest.mark.parametrize("hinted", [True, False])
def test_turns_are_those_of_a_slow_model(hinted: bool) -> None:
    """Whatever the claims ask for: that share by share round the ring, in many looks that each know a part of it."""
    chance = random.Random(14)
    for _ in range(300):
        waiting = {name: chance.randrange(0, 9) for name in "abcdefgh"[: chance.randrange(1, 9)]}
        weights = {name: chance.randrange(1, 5) for name in waiting}
        lane = Lane(waiting, weights, hinted=hinted)
        quick = ""
        while part := lane.claim(chance.randrange(1, 12)):
            quick += part
        assert quick == slowly(waiting, weights), (waiting, weights, quick)


def test_one_that_runs_out_costs_one_more_statement_not_one_for_each_job() -> None:
    lane = Lane({"a": 1000, **dict.fromkeys("bcdefghij", 1)})

    assert len(lane.claim(100)) == 100
    assert lane.statements <= 2


def test_a_turn_that_a_claim_cut_goes_on_in_the_next_even_if_the_ring_is_long() -> None:
    lane = Lane(dict.fromkeys("abcdef", 50), {"b": 7})

    assert [lane.claim(3) for _ in range(5)] == ["abb", "bbb", "bbc", "def", "abb"]


def test_what_was_not_used_is_not_owed() -> None:
    lane = Lane({"a": 20, "b": 1}, {"b": 9})
    assert lane.claim(4) == "abaa"
    lane.waiting["b"] = 20

    assert lane.claim(11) == "b" * 9 + "ab"


def test_jobs_without_a_share_are_one_more_also_if_they_come_later() -> None:
    turns = LaneTurns(RingPlace("a"))
    members = RingMember("b", 1), RingMember("a", 1)
    turns.looked(Ring(members, True, "a", begins=1, weight=2), anybodys=True)

    assert {member.lane: count for member, count in turns.plan(4)} == {"b": 1, ANYBODYS: 2, "a": 1}
    found, short = turns.claimed([job("a", 1), job(ANYBODYS, 1), job("b", 1)])
    assert ([each.share for each in found], short) == (["b", None, "a"], {ANYBODYS})
    assert ANYBODYS not in {member.lane for member, _ in turns.plan(9)}
    turns.claimed([])
    turns.anybodys_came()
    assert {member.lane: count for member, count in turns.plan(2)} == {ANYBODYS: 2}


def test_workers_do_not_all_begin_with_the_same_share() -> None:
    begins = set()
    for _ in range(200):
        turns = LaneTurns(None)
        turns.looked(Ring(tuple(RingMember(share, 1) for share in "abcd"), True, "d"), anybodys=False)
        begins |= {member.lane for member, _ in turns.plan(1)}
    assert begins == set("abcd")


def test_a_look_that_was_asked_for_during_a_claim_begins_behind_the_last_turn() -> None:
    turns = LaneTurns(RingPlace())
    turns.looked(Ring((RingMember("a", 1), RingMember("b", 1)), True, "b"), anybodys=False)
    turns.plan(1)
    turns.restart(0)
    turns.claimed([job("a", 1)])
    assert turns.wants_look(1) and (turns.after, turns.until) == ("a", "a")
