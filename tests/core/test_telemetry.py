"""Events and counters."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fencerow.core.telemetry import FIELDS, Counters, Fact, Telemetry


def test_listeners_hear_events_in_order_until_they_leave() -> None:
    telemetry, heard = Telemetry(), []
    leave = telemetry.listen(lambda name, facts: heard.append((1, name, facts["count"])))
    telemetry.listen(lambda name, facts: heard.append((2, name, facts["count"])))

    telemetry.emit(Fact.CLAIMED, count=3)
    leave()
    leave()
    telemetry.emit("claimed", count=4)

    assert heard == [(1, "claimed", 3), (2, "claimed", 3), (2, "claimed", 4)]


def test_a_listener_that_raises_is_logged_counted_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    telemetry, heard = Telemetry(), []

    def broken(name: str, facts: Mapping[str, Any]) -> None:
        raise RuntimeError("deaf")

    telemetry.listen(broken)
    telemetry.listen(lambda name, facts: heard.append(name))

    with caplog.at_level(logging.ERROR):
        telemetry.emit("failed")
        telemetry.emit("failed")

    assert heard == ["failed", "failed"]
    assert telemetry.failures == 2
    assert len(caplog.records) == 2
    assert all(record.exc_info for record in caplog.records)


def test_one_listener_cannot_change_the_facts_of_the_next() -> None:
    telemetry, heard = Telemetry(), []
    telemetry.listen(lambda name, facts: facts.clear())  # type: ignore[attr-defined]
    telemetry.listen(lambda name, facts: heard.append(facts["name"]))

    telemetry.emit("failed", name="x")

    assert heard == ["x"]


def test_the_same_listener_may_be_added_twice_and_taken_away_once() -> None:
    telemetry, heard = Telemetry(), []

    def listener(name: str, facts: Mapping[str, Any]) -> None:
        heard.append(name)

    leave = telemetry.listen(listener)
    telemetry.listen(listener)
    leave()
    telemetry.emit("failed")

    assert heard == ["failed"]


def test_counters_lose_nothing_between_threads() -> None:
    counters = Counters()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: [counters.add("a") for _ in range(500)], range(8)))

    assert counters.get("a") == 4_000
    assert counters.get("b") == 0


def test_every_event_has_its_facts_listed() -> None:
    assert set(FIELDS) == set(Fact)
