"""What the doctor says of turns: nobody gives them, one job keeps one for very long, gates that nobody needs."""

from __future__ import annotations

import pytest

from fencerow import Config
from fencerow.core.finding import Finding, Level
from fencerow.limits import Limit, limits
from fencerow.limits.checks import examine_limits
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import checks, handing, looks
from tests.doctor.test_why import worker
from tests.kit import jobs
from tests.kit.jobs import AnyEngine
from tests.turns.test_turns import gated, hand_over

CONFIG = Config(url="sqlite:///other.db")  # the checks look at the engine


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "AGAIN_S", 0.0)


def findings(engine: AnyEngine) -> dict[str, Finding]:
    return {each.name: each for each in checks.examine_keys(engine, CONFIG)}


def test_turns_that_go_on_are_well(engine: AnyEngine, clock: DatabaseClock) -> None:
    gated(engine, 2)
    hand_over(engine)
    clock.advance(checks.LATE_S + 1)
    found = findings(engine)
    assert set(found) == {"keys and limits"}
    assert found["keys and limits"].found == "1 row of exclusive keys and limits, of which nobody needs 0"


def test_a_turn_that_nobody_gives_is_told(engine: AnyEngine, clock: DatabaseClock) -> None:
    first, _ = gated(engine, 2)
    assert "key that lets nobody start" not in findings(engine), "it has just come"
    clock.advance(checks.LATE_S + 1)
    found = findings(engine)["key that lets nobody start"]
    assert found.level is Level.WARN
    assert f"key k has room, and job {first} waits" in found.found


def test_a_gate_that_is_due_and_nobody_looks_at_is_told(engine: AnyEngine, clock: DatabaseClock) -> None:
    gated(engine, 1, delay_s=10.0)
    hand_over(engine)
    clock.advance(11 + checks.LATE_S)
    assert "one that is due for 1 min" in findings(engine)["keys and limits not looked at"].found


def test_a_key_held_for_long_names_the_job(engine: AnyEngine, clock: DatabaseClock) -> None:
    first, _ = gated(engine, 2)
    hand_over(engine)
    jobs.claim(engine, worker(engine), limit=1)
    clock.advance(checks.HELD_S + 60)
    found = findings(engine)["key held for long"]
    assert first in found.found and "1 wait" in found.found and "in w1 on h1" in found.found


def test_gates_that_nobody_needs_are_counted_and_go(engine: AnyEngine, clock: DatabaseClock) -> None:
    for number in range(5):
        engine.run(handing.hand_over([f"key:idle-{number}"]))
    gated(engine, 1)
    gated(engine, 1, exclusive="later", delay_s=60.0)
    hand_over(engine)
    assert (
        findings(engine)["keys and limits"].found
        == "7 rows of exclusive keys and limits, of which nobody needs 5"
    )

    after, rounds = "", 0
    while after or not rounds:
        after, rounds = engine.run(looks.forget_gates(after, limit=3)).after, rounds + 1

    assert rounds == 3
    assert (
        findings(engine)["keys and limits"].found
        == "2 rows of exclusive keys and limits, of which nobody needs 0"
    )
    clock.advance(61)
    assert len(hand_over(engine)) == 1


def test_a_limit_that_nobody_defines_any_more_is_told(engine: AnyEngine) -> None:
    limit = Limit("github", at_once=1, per_key=True)
    engine.run(limits.define(limit, actor=None, reason=None))
    gated(engine, 1, exclusive=None, limits=("github/a",))
    assert [each.name for each in examine_limits(engine, CONFIG)] == ["limits"]
    hand_over(engine)
    engine.run(limits.remove("github", revision=1))
    found = [each for each in examine_limits(engine, CONFIG) if each.name == "unknown limit"]
    assert [each.found for each in found] == [
        "live jobs name the limit github/a, which nobody defines any more, so nothing binds them"
    ]
    assert found[0].fix == "`fencerow limits set github --at-once 4 --per-key` defines it"
