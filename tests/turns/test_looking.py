"""Who has the turns of a key, who waits for one, and why a job that waits at a gate does not run."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow import Client, InvalidInput
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.limits import Limit, limits
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import KeySummary
from fencerow.turns.keys import known_keys
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.doctor.test_why import ask, false, found, worker
from tests.kit import jobs
from tests.kit.jobs import AnyEngine
from tests.turns.test_turns import gated, hand_over, retried

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

TURN = "its key and limits let it start"


def held(engine: AnyEngine, count: int = 2, **changes: Any) -> list[str]:
    """Jobs of the key k, of which the first runs in a worker."""
    ids = gated(engine, count, **changes)
    hand_over(engine)
    jobs.claim(engine, worker(engine), limit=1)
    return ids


def test_a_key_is_shown_with_who_holds_it_and_who_waits(engine: AnyEngine, clock: DatabaseClock) -> None:
    first, second = held(engine, 2)
    clock.advance(60)
    (high,) = gated(engine, 1, priority=5)
    (paused,) = gated(engine, 1, queue="else")
    engine.run(pause_queue("else", actor="ada"))

    key = Client(engine).exclusive.get("k")

    (holder,) = key.holders
    assert (holder.id, holder.state, holder.attempt, holder.worker) == (first, State.RUNNING, 1, "w1")
    assert 60e6 <= key.now_us - holder.since_us < 120e6
    assert [each.id for each in key.waiting] == [high, second, paused]
    assert [each.paused for each in key.waiting] == [False, False, True]
    assert (key.at_once, key.waiting_count) == (1, 3)
    assert len(Client(engine).exclusive.get("k", waiting=1).waiting) == 1
    assert Client(engine).exclusive.get("free").holders == []


def test_a_strict_job_between_its_attempts_is_told_from_one_that_never_ran(engine: AnyEngine) -> None:
    (job_id,) = gated(engine, 1, strict=True)
    hand_over(engine)
    (holder,) = Client(engine).exclusive.get("k").holders
    assert (holder.state, holder.keeps_its_turn) == (State.QUEUED, False)
    by = worker(engine)
    jobs.claim(engine, by)
    engine.run(store.requeue([retried(job_id)], holder=by))
    (holder,) = Client(engine).exclusive.get("k").holders
    assert (holder.state, holder.keeps_its_turn) == (State.QUEUED, True)


def test_keys_are_listed_the_longest_wait_first(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Also where the one that waits longest stands behind others of a higher priority."""
    gated(engine, 1, exclusive="alone")
    gated(engine, 2, exclusive="early")
    gated(engine, 1, exclusive="low")
    hand_over(engine)
    clock.advance(30)
    gated(engine, 2, exclusive="late")
    gated(engine, 2, exclusive="low", priority=7)
    hand_over(engine)
    rows = Client(engine).exclusive.known()

    assert rows.is_whole
    assert [each.key for each in rows.keys] == ["early", "late", "low", "alone"]
    by_key = {each.key: each for each in rows.keys}
    assert _counts(by_key["early"]) == (0, 1, 1)
    assert _counts(by_key["low"]) == (0, 1, 2)
    assert _counts(by_key["alone"]) == (0, 1, 0)
    assert by_key["alone"].waits_since_us is None and by_key["alone"].held_since_us is not None
    assert [each.key for each in Client(engine).exclusive.known(limit=2).keys] == ["early", "late"]
    assert not engine.run(known_keys(limit=9, look=2)).is_whole


def _counts(key: KeySummary) -> tuple[int, int, int]:
    return key.running, key.queued, key.waiting


def test_of_lanes_of_one_key_the_earliest_counts(engine: AnyEngine, clock: DatabaseClock) -> None:
    for _ in range(2):
        gated(engine, 1, priority=1)
        clock.advance(10)
    (early,) = gated(engine, 1, delay_s=-500.0)
    gated(engine, 1, exclusive="other", delay_s=-100.0)
    gated(engine, 1, exclusive="other", delay_s=-90.0)
    assert [each.key for each in Client(engine).exclusive.known().keys] == ["k", "other"]
    (first, _) = Client(engine).exclusive.known().keys
    assert first.waits_since_us == jobs.read(engine, early).run_at_us


@pytest.mark.parametrize("limit", [0, 10_001])
def test_a_limit_that_cannot_be_is_refused(engine: AnyEngine, limit: int) -> None:
    exclusive = Client(engine).exclusive
    for asked in (lambda: exclusive.known(limit=limit), lambda: exclusive.get("k", waiting=limit)):
        with pytest.raises(InvalidInput, match=str(limit)):
            asked()
    with pytest.raises(InvalidInput):
        exclusive.get("")


def test_why_names_who_has_the_turn_and_how_many_come_before(engine: AnyEngine) -> None:
    first, _, third = held(engine, 3)
    answer = ask(engine, third)
    assert false(answer) >= {TURN}
    said = found(answer, TURN)
    assert said.startswith("the exclusive key k is taken, 1 of 1")
    assert f"by job {first} (send), which runs for" in said and "in w1 on h1" in said
    assert "; due jobs that come before it: 1. " in said
    assert answer.summary.startswith(said)


def test_why_says_what_else_keeps_a_job_from_its_turn(engine: AnyEngine) -> None:
    (later,) = gated(engine, 1, delay_s=600.0)
    (paused,) = gated(engine, 1, queue="else")
    engine.run(pause_queue("else", actor="ada"))
    assert TURN not in false(ask(engine, later)) and "is due" in false(ask(engine, later))
    assert TURN not in false(ask(engine, paused)) and "queue is open" in false(ask(engine, paused))
    (due,) = gated(engine, 1)
    assert "has room; it is the next; no worker is alive" in found(ask(engine, due), TURN)
    worker(engine)
    assert "a worker queues it within a moment" in found(ask(engine, due), TURN)


def test_why_names_a_gate_that_is_of_no_key(engine: AnyEngine) -> None:
    engine.run(limits.define(Limit("github", at_once=4), actor=None, reason=None))
    (limited,) = gated(engine, 1, exclusive=None, limits=("github",))
    assert found(ask(engine, limited), TURN) == (
        "the limit github has room; it is the next; no worker is alive: start `fencerow worker`"
    )


def test_the_commands_say_it(cli: Cli, url: str, engine: AnyEngine) -> None:
    assert "no live job has an exclusive key" in cli("exclusive").out
    first, second = held(engine, 2)
    shown = cli("exclusive", "show", "k").out
    assert "1 of 1 taken" in shown and first in shown and second in shown
    assert "No live job has this key." in cli("exclusive", "show", "x").out
    (listed,) = cli("exclusive", "list", "--json").json
    assert (listed["key"], listed["running"], listed["waiting"]) == ("k", 1, 1)
    told = cli("exclusive", "show", "k", "--json").json
    assert [each["id"] for each in told["holders"]] == [first]
