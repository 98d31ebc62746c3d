"""`fencerow events`, and what the doctor says of the bus."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.ids import new_id
from fencerow.events import NewEvent, consumers, lag, publish_many
from fencerow.events.consumers import Aside
from fencerow.events.groups import GroupStart, make_group
from fencerow.events.sequencer import sequence
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures


@pytest.fixture
def bus(engine: AnyEngine) -> AnyEngine:
    """Three events, the first of them parked by the group `billing`, which has read it alone."""
    app = app_on(engine)
    events = [NewEvent("order.paid", {"order": number}, "ada", {"trace": "t"}) for number in range(3)]
    publish_many(app, events)
    engine.run(sequence())
    engine.run(make_group("billing", ["order.*"], partitions=1, start=GroupStart("beginning")))
    held = engine.run(consumers.hold_partitions("billing", holder=new_id(), name="w", lease_s=30.0))
    parked = Aside(1, 1, "ada", 8, 0.0, True, '{"type":"ValueError","message":"no account"}')
    engine.run(consumers.advance(held.leases[0], old=0, cursor=1, asides=[parked]))
    app.close()
    return engine


def test_groups_and_their_lag_are_listed(cli: Cli, url: str, bus: AnyEngine) -> None:
    (group,) = cli("events", "groups", "--json").json
    assert (group["name"], group["topics"], group["partitions"]) == ("billing", ["order.*"], 1)
    assert "billing" in cli("events", "groups").out
    found = cli("events", "lag", "--json").json
    assert (found["groups"][0]["events"], found["groups"][0]["parked"], found["log"]["head"]) == (2, 1, 3)
    assert "position 3" in cli("events", "lag", "billing").out


def test_parked_events_are_shown_and_redriven(cli: Cli, url: str, bus: AnyEngine) -> None:
    (parked,) = cli("events", "parked", "--json").json
    assert parked["error"]["message"] == "no account" and parked["event"]["data"] == {"order": 0}
    assert "no account" in cli("events", "parked", "billing").out
    assert cli("events", "redrive", "billing").code == 2
    assert cli("events", "redrive", "billing", "7").code == 1
    assert "1 event of billing" in cli("events", "redrive", "billing", "1").out
    assert cli("events", "parked", "--json").json == []
    assert cli("events", "discard", "billing", "--all").code == 1, "nothing is parked any more"
    for words in (["parked", "biling"], ["discard", "biling", "--all"]):
        refused = cli("events", *words)
        assert (refused.code, refused.error) == (1, "FR-731") and "billing" in refused.err


def test_a_group_is_replayed_and_removed(cli: Cli, url: str, bus: AnyEngine) -> None:
    assert "generation 2" in cli("events", "replay", "billing", "--from", "beginning").out
    assert "after position 1" in cli("events", "replay", "billing", "--from", "2").out
    assert "after position 0" in cli("events", "replay", "billing", "--from", "2000-01-01T00:00:00+00:00").out
    assert cli("events", "replay", "billing", "--from", "yesterday").code == 2
    refused = cli("events", "replay", "biling", "--from", "1")
    assert refused.code == 1 and "FR-731" in refused.err and "billing" in refused.err
    assert cli("events", "remove", "billing").code == 0
    assert "no group" in cli("events", "groups").out


def test_one_event_is_shown(cli: Cli, url: str, bus: AnyEngine) -> None:
    found = cli("events", "show", "2", "--json").json
    assert (found["topic"], found["key"], found["data"], found["headers"]) == (
        "order.paid",
        "ada",
        {"order": 1},
        {"trace": "t"},
    )
    assert "order.paid" in cli("events", "show", "2").out
    assert cli("events", "show", "99").code == 1 and cli("events", "show", "x").code == 2


def test_the_doctor_looks_at_the_bus(cli: Cli, url: str, bus: AnyEngine) -> None:
    def findings() -> dict[str, Any]:
        return {
            each["name"]: each for each in cli("doctor", "--json").json["findings"] if "event" in each["name"]
        }

    assert findings()["parked events"]["level"] == "warn"
    bus.run(lag.alarm("billing"))
    assert findings()["unread events"]["level"] == "fail"
