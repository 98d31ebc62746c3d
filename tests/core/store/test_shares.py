"""The statements of shares: who is in the ring of a lane, and what a claim in turn takes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fencerow.core.model.job import Claimed, NewJob
from fencerow.core.model.lane import ANYBODYS, SHARE
from fencerow.core.model.turns import Ring
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import clock_of
from fencerow.turns import shares
from tests.kit import jobs
from tests.kit.jobs import NAME, QUEUE, AnyEngine, new_job, register, submit


def of(share: str | None, count: int, **changes: Any) -> list[NewJob]:
    return [new_job(share=share, **changes) for _ in range(count)]


def ring(
    engine: AnyEngine, after: str = "", until: str | None = None, *, limit: int = 10, from_us: int = 0
) -> Ring:
    until = after if until is None else until
    after, until = (SHARE + each if each else each for each in (after, until))
    return engine.run(store.ring(QUEUE, 0, after, until, names=[NAME], limit=limit, from_us=from_us))


def members(found: Ring) -> str:
    return " ".join(member.lane.removeprefix(SHARE) for member in found.members)


def claim(
    engine: AnyEngine, holder: str, counts: Mapping[str, int], *, names: Sequence[str] = (NAME,)
) -> list[Claimed]:
    lanes = [
        Mark(0, lane=SHARE + share if share else ANYBODYS, count=count) for share, count in counts.items()
    ]
    return jobs.claim(engine, holder, limit=sum(counts.values()), names=names, marks=lanes)


def whose(claimed: Sequence[Claimed]) -> dict[str, int]:
    return dict(Counter(job.share or ANYBODYS for job in claimed))


def test_the_ring_goes_round_from_any_place(engine: AnyEngine) -> None:
    submit(engine, *(job for share in "bdf" for job in of(share, 3)))

    assert members(ring(engine)) == "b d f"
    for after, expected in (("a", "b d f"), ("b", "d f b"), ("c", "d f b"), ("f", "b d f"), ("z", "b d f")):
        found = ring(engine, after)
        assert (members(found), found.whole) == (expected, True), after


def test_the_ring_is_found_in_parts(engine: AnyEngine) -> None:
    submit(engine, *(job for share in "abcdefg" for job in of(share, 2)))
    for start in ("", "a", "c", "cc", "g", "x"):
        found, after, whole = [], start, False
        for _ in range(9):
            part = ring(engine, after, start, limit=2)
            found += [member.lane.removeprefix(SHARE) for member in part.members]
            after, whole = part.last.removeprefix(SHARE), part.whole
            if whole:
                break
        behind = [share for share in "abcdefg" if share > start]
        assert whole and found == [*behind, *(share for share in "abcdefg" if share <= start)], start


def test_what_is_not_due_is_in_no_ring_but_is_passed(engine: AnyEngine) -> None:
    later = submit(engine, *of("a", 1, delay_s=3600.0), *of("b", 1, delay_s=3600.0))
    submit(engine, *of("c", 1), *of("d", 1, priority=5), *of("e", 1, queue="other"))

    assert members(ring(engine)) == "c"
    part = ring(engine, limit=1)
    assert (members(part), part.whole, part.last) == ("c", False, "share:c")
    first_us = min(job.run_at_us for job in engine.run(store.read(later)).values())
    assert part.later_us == first_us


def test_the_ring_shows_only_what_a_claim_could_take(engine: AnyEngine) -> None:
    """Jobs of names that nobody knows here, expired ones, and those before the place where the look begins."""
    holder = register(engine)
    unknown = [job for number in range(30) for job in of(f"u{number:02}", 2, name="unknown here")]
    submit(engine, *unknown, *of("e", 1, expires_s=60.0))
    clock_of(engine).advance(120)
    known = [*of("u10", 1), *of("u10", 1, name="unknown here"), *of("u20", 1), *of("later", 1, delay_s=60.0)]
    submit(engine, *known)

    found = ring(engine)
    assert (members(found), found.whole, found.later_us is None) == ("u10 u20", True, False)
    (first,) = [member.mark_us + 1 for member in found.members if member.lane == SHARE + "u10"]
    assert (members(ring(engine, from_us=first - 1)), members(ring(engine, from_us=first))) == ("u10 u20", "")
    assert whose(claim(engine, holder, {member.lane.removeprefix(SHARE): 9 for member in found.members})) == {
        "u10": 1,
        "u20": 1,
    }
    submit(engine, *of("u20", 1))
    engine.run(pause_queue(QUEUE, actor=None, reason=None))
    assert (members(ring(engine)), ring(engine).whole) == ("", True)


def test_a_ring_says_where_the_names_begin_again_and_what_is_known_of_those_without_a_share(
    engine: AnyEngine,
) -> None:
    submit(engine, *of("a", 2), *of("b", 1), *of(None, 1))
    engine.run(shares.weigh_share(QUEUE, "", 7, actor="ada"))
    assert (ring(engine).begins, ring(engine).weight) == (None, 7)
    assert [ring(engine, after).begins for after in ("a", "b")] == [1, 0]


def test_a_claim_takes_so_many_of_each_and_those_that_were_due_first(engine: AnyEngine) -> None:
    holder = register(engine)
    first = of("a", 3)
    submit(engine, *first, *of("b", 1), *of("c", 2), *of("a", 1, priority=5))

    claimed = claim(engine, holder, {"a": 2, "b": 2})

    assert whose(claimed) == {"a": 2, "b": 1}
    assert {job.id for job in claimed if job.share == "a"} == {job.id for job in first[:2]}
    assert claim(engine, holder, {"z": 3}) == []


def test_a_claim_in_turn_has_the_guards_of_a_claim(engine: AnyEngine) -> None:
    holder = register(engine)
    submit(engine, *of("a", 1), *of("a", 1, name="unknown here"), *of("a", 1, delay_s=3600.0))

    assert claim(engine, "00000000-0000-7000-8000-000000000001", {"a": 3, ANYBODYS: 3}) == []
    engine.run(pause_queue(QUEUE, actor="ada"))
    assert claim(engine, holder, {"a": 3}) == []
    submit(engine, *of("a", 1, queue="other"))
    assert len(jobs.claim(engine, holder, queue="other", marks=[Mark(0, lane="share:a")])) == 1


def test_all_shares_of_a_priority_are_one_lane_of_a_look_with_their_first_instant(engine: AnyEngine) -> None:
    submit(engine, *of("a", 1, priority=5), *of("b", 1, priority=5), *of(None, 1))
    (later,) = submit(engine, *of("a", 1, delay_s=60.0, priority=1))
    submit(engine, *of("b", 1, delay_s=90.0, priority=1))

    lanes, now_us = engine.run(store.lanes(QUEUE))

    assert [(lane.priority, lane.name) for lane in lanes] == [(5, SHARE), (1, SHARE), (0, ANYBODYS)]
    assert lanes[0].first_us <= now_us
    assert lanes[1].first_us == jobs.read(engine, later).run_at_us


@pytest.mark.parametrize("share", ["a", None])
def test_all_ways_of_submitting_keep_the_share(engine: AnyEngine, share: str | None) -> None:
    one, two, three = of(share, 1), of(share, 3), of(share, 1)
    engine.run(store.submit(one))
    engine.run(store.submit(two))
    engine.run(store.resubmit(three))
    stored = [*one, *two, *three]
    if isinstance(engine, PostgresEngine):
        stored += (many := of(share, 3))
        engine.run(store.submit_by_copy(many))

    found = engine.run(store.read([each.id for each in stored]))
    assert {found[each.id].share for each in stored} == {share}
    assert {found[each.id].state.value for each in stored} == {"queued"}


def test_a_share_stays_with_its_job_to_the_end_and_when_it_is_revived(engine: AnyEngine) -> None:
    holder = register(engine)
    submit(engine, *of("a", 1))
    (job,) = claim(engine, holder, {"a": 1})
    engine.run(store.fail([store.Failure(job.id, job.attempt, "{}")], holder=holder))
    assert engine.run(store.read([job.id]))[job.id].share == "a"

    engine.run(store.revive(job.id, actor="ada"))

    assert engine.run(store.read([job.id]))[job.id].share == "a"
    (again,) = claim(engine, holder, {"a": 1})
    engine.run(store.succeed([store.Success(again.id, again.attempt, "1")], holder=holder))
    assert engine.run(store.read([job.id]))[job.id].share == "a"


def test_weights_are_read_with_the_ring(engine: AnyEngine) -> None:
    submit(engine, *of("a", 2), *of(None, 1), *of("b", 1))

    assert engine.run(shares.weigh_share(QUEUE, "b", 2, actor="ada"))
    assert not engine.run(shares.weigh_share(QUEUE, "b", 2, actor="ada"))
    assert [member.weight for member in ring(engine).members] == [1, 2]
    assert engine.run(shares.forget_weight(QUEUE, "b"))
    assert not engine.run(shares.forget_weight(QUEUE, "b"))
    assert [member.weight for member in ring(engine).members] == [1, 1]


def test_shares_are_listed_with_their_weights_and_what_they_have(engine: AnyEngine) -> None:
    holder = register(engine)
    submit(engine, *of("a", 3), *of("b", 1, queue="other"))
    engine.run(shares.weigh_share(QUEUE, "c", 4, actor="ada"))
    claim(engine, holder, {"a": 1})

    found = [
        (each.queue, each.share, each.weight, each.queued, each.running)
        for each in engine.run(shares.read_shares())
    ]

    assert found == [(QUEUE, "a", 1, 2, 1), (QUEUE, "c", 4, 0, 0), ("other", "b", 1, 1, 0)]
    assert [each.share for each in engine.run(shares.read_shares("other"))] == ["b"]
