"""Whatever dies at whatever point of what a relay does: messages are stored once, and never without their position."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.relay import parts, relays
from fencerow.relay.parts import PartLease
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case, Unrecovered, crash_everywhere
from tests.proof.crash.operations import is_operation
from tests.proof.race.people import FIRST, LEASE_S, SECOND, uid
from tests.proof.race.test_relay import RELAY, alive, intake, one_reader

LEASE = PartLease(RELAY, 0, FIRST, 1, "0", 1)


def another_reads_on() -> Script:
    """The process is gone: a second one finds the part, and stores what is not stored."""
    yield later(LEASE_S + 1)
    yield alive(SECOND)
    held = yield parts.hold_parts(RELAY, holder=SECOND)
    assert held.leases, "nobody can take the part"
    lease = held.leases[0]
    if lease.position in ("", "0"):
        yield parts.take(lease, intake(1))
    yield from stored_once()


def asks_again() -> Script:
    """The process lives, and begins anew with what the database says."""
    yield alive(FIRST)
    held = yield parts.hold_parts(RELAY, holder=FIRST)
    if held.leases[0].position == "0":
        yield parts.take(held.leases[0], intake(1))
    yield from stored_once()


def stored_once() -> Script:
    (part,) = yield relays.parts_of(RELAY)
    kept = yield relays.unread(limit=9)
    known = yield store.read_fences([uid(1)])

    assert part.position != "0" or part.stopped, "the messages are not stored"
    if part.position == "2":
        assert len(kept) == 1 and len(known) == 1, f"{len(kept)} unread, {len(known)} jobs: a part is stored"
        assert (part.taken, part.unread) == (1, 1)


def known_only() -> Script:
    yield relays.know(RELAY, "in", "kafka host topic t")
    yield alive(FIRST)


def with_unread() -> Script:
    yield from one_reader()
    yield parts.take(LEASE, intake(1))


def begun_or_not() -> Script:
    yield alive(SECOND)
    yield parts.make_parts(RELAY, 1)
    yield from another_reads_on()


def nothing_or_all() -> Script:
    """Who removes is gone: the relay is there whole, or not at all."""
    found = yield relays.listed(RELAY)
    kept = yield relays.unread(RELAY, limit=9)
    assert bool(found) == bool(kept), "a part of it is left"


def as_it_was() -> Script:
    (part,) = yield relays.parts_of(RELAY)
    assert part.position in ("0", "100", "2")


OPERATIONS = [
    ("take", one_reader, parts.take(LEASE, intake(1)), another_reads_on),
    ("take, the answer lost", one_reader, parts.take(LEASE, intake(1)), asks_again),
    ("hold_parts", one_reader, parts.hold_parts(RELAY, holder=FIRST), another_reads_on),
    ("give_parts", one_reader, parts.give_parts(RELAY, [0], holder=FIRST), another_reads_on),
    ("make_parts", known_only, parts.make_parts(RELAY, 1), begun_or_not),
    ("begin", one_reader, parts.begin(LEASE, "0", anew=True, gone=3), another_reads_on),
    ("note_lag", one_reader, parts.note_lag(LEASE, 5), another_reads_on),
    ("stop", one_reader, parts.stop(LEASE, "gone"), as_it_was),
    ("know", one_reader, relays.know(RELAY, "in", "kafka other topic t"), another_reads_on),
    ("renew", one_reader, alive(FIRST), another_reads_on),
    ("leave", one_reader, relays.leave(RELAY, holder=FIRST), another_reads_on),
    ("pause", one_reader, relays.pause(RELAY, "why"), another_reads_on),
    ("resume", one_reader, relays.resume(RELAY), another_reads_on),
    ("set_position", one_reader, relays.set_position(RELAY, 0, "100", again=True), as_it_was),
    ("forget_dead", one_reader, relays.forget_dead(age_s=0.0), another_reads_on),
    ("purge_unread", with_unread, relays.purge_unread(age_s=0.0, limit=9), as_it_was),
    ("discard", with_unread, relays.discard(RELAY), as_it_was),
    ("remove", with_unread, relays.remove(RELAY), nothing_or_all),
]
CASES = {name: Case(name, setup, operation, react) for name, setup, operation, react in OPERATIONS}
READS = {"known", "listed", "parts_of", "unread"}


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
@pytest.mark.parametrize("name", CASES)
def test_every_point_of_it_is_survived(
    name: str, mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    number, seconds = crash_everywhere(arenas[mode], CASES[name])

    facts = {"scenario": f"crash in relay: {name}", "mode": mode, "played": number, "total": number}
    record_property("crash", json.dumps({**facts, "seconds": seconds}))


def test_every_operation_of_relays_is_among_them() -> None:
    verbs = {
        name
        for module in (parts, relays)
        for name, verb in inspect.getmembers(module, inspect.isfunction)
        if is_operation(verb) and verb.__module__ == module.__name__
    }

    assert verbs - {case.operation.name for case in CASES.values()} == READS


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
def test_a_position_that_is_written_apart_from_the_messages_is_seen(
    mode: str, arenas: Mapping[str, Any]
) -> None:
    """Control: the position stays where it is, as with a broker that is told of it later; so all comes once more."""
    arena = arenas[mode]
    whole = arena.queries
    arena.queries = whole.altered("move_relay_part", "SET position = :position", "SET position = :old")
    try:
        with pytest.raises(Unrecovered):
            crash_everywhere(arena, CASES["take"])
    finally:
        arena.queries = whole
