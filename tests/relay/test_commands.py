"""`fencerow relay`, and what the doctor says of relays. Nothing here needs a broker."""

from __future__ import annotations

import pytest

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Level
from fencerow.core.model.ids import new_id
from fencerow.relay import parts, relays
from fencerow.relay.checks import examine_relays
from fencerow.relay.parts import Intake, Unread
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

PLACE = "kafka host:9092 topic t"
HOLDER = new_id()
BAD = Unread("7", "k", None, "ew==", 1, "no JSON")


@pytest.fixture
def known(engine: AnyEngine) -> AnyEngine:
    """A relay that takes, of two parts, whose first one could not read a message; and one that sends."""
    for name, direction in (("in", "in"), ("out", "out")):
        engine.run(relays.know(name, direction, PLACE))
        engine.run(relays.renew(name, holder=HOLDER, name="w1", lease_s=3600.0, trouble=None))
    engine.run(parts.make_parts("in", 2))
    lease = engine.run(parts.hold_parts("in", holder=HOLDER)).leases[0]
    engine.run(parts.take(lease, Intake("8", 2, unread=[BAD], lag=5)))
    return engine


def named(engine: AnyEngine) -> dict[str, Level]:
    return {each.name: each.level for each in examine_relays(engine, CoreConfig())}


def test_relays_and_their_parts_are_listed(cli: Cli, url: str, known: AnyEngine) -> None:
    inward, outward = cli("relay", "--json").json
    assert (inward["name"], inward["lag"], inward["taken"], inward["unread"]) == ("in", 5, 1, 1)
    assert outward["direction"] == "out" and outward["readers"] == 1
    assert "runs" in cli("relay", "list").out
    first, second = cli("relay", "parts", "in", "--json").json
    assert (first["position"], first["reader"], second["position"]) == ("8", "w1", "not begun")
    assert cli("relay", "parts", "nobody").error == "FR-945"


def test_a_relay_rests_goes_on_and_is_moved(cli: Cli, url: str, known: AnyEngine) -> None:
    assert "in rests" in cli("relay", "pause", "in", "--reason", "migration").out
    assert "already" in cli("relay", "pause", "in").out
    assert "migration" in cli("relay", "list").out and named(known)["relay that rests"] is Level.INFO
    assert "goes on" in cli("relay", "resume", "in").out

    assert cli("relay", "move", "in", "0", "1-1").code == 2, "that is a position of Redis"
    assert cli("relay", "move", "in", "9", "3").error == "FR-945"
    assert cli("relay", "move", "out", "0", "3").error == "FR-945"
    assert cli("relay", "move", "in", "0", "3", "--again").code == 0
    assert cli("relay", "move", "in", "1", "beginning").code == 0
    found = known.run(relays.parts_of("in"))
    assert [(each.position, each.generation, each.reader) for each in found] == [
        ("3", 1, None),
        ("<", 0, None),
    ]


def test_what_could_not_be_read_is_shown_and_forgotten(cli: Cli, url: str, known: AnyEngine) -> None:
    (kept,) = cli("relay", "unread", "in", "--json").json
    assert (kept["raw"], kept["error"], kept["bytes"]) == ("{", "no JSON", 1)
    assert "no JSON" in cli("relay", "unread").out
    assert cli("relay", "discard", "in").code == 2
    assert "1 message" in cli("relay", "discard", "in", "--all").out
    assert cli("relay", "discard", "in", str(kept["id"])).code == 1
    assert cli("relay", "remove", "in").code == 0 and cli("relay", "remove", "in").error == "FR-945"


def test_the_doctor_tells_of_brokers_that_are_away_of_what_is_lost_and_of_relays_that_nobody_runs(
    known: AnyEngine,
) -> None:
    assert named(known)["relays"] is Level.OK and "relay that nobody runs" not in named(known)
    known.run(relays.renew("in", holder=HOLDER, name="w1", lease_s=60.0, trouble="FR-947: gone"))
    assert named(known)["relay whose broker is away"] is Level.WARN
    lease = known.run(parts.hold_parts("in", holder=HOLDER)).leases[0]
    known.run(parts.stop(lease, "trimmed"))
    assert named(known)["relay that has stopped"] is Level.FAIL
    assert named(known)["relay that lost messages"] is Level.WARN

    known.run(relays.leave("in", holder=HOLDER))
    assert named(known)["relay that nobody runs"] is Level.WARN
