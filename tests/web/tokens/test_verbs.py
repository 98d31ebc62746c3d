"""Tokens are made, looked at and revoked; what cannot be a token is refused before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fencerow import Client, InvalidInput
from fencerow.core.config import CoreConfig
from fencerow.core.model.defaults import DAY_S
from fencerow.core.model.ids import new_id
from fencerow.core.telemetry import Telemetry
from fencerow.core.wing import Purge
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import TokenNotFound, TokenOver
from fencerow.testing.clock import DatabaseClock
from fencerow.web import Scope
from fencerow.web.tokens.operations import WantedToken, create, note_use, tokens_of_hashes
from fencerow.web.tokens.record import TokenState
from fencerow.web.tokens.secret import hash_of
from fencerow.web.wing import WING

AnyEngine = SqliteEngine | PostgresEngine


def test_a_token_is_made_and_only_its_hash_is_stored(engine: AnyEngine) -> None:
    verbs = Client(engine, actor="ada").tokens

    made = verbs.create("deploy", scopes=["read", Scope.SUBMIT, "read"], queues={"mail", "docs"})

    record = made.record
    assert (record.name, record.scopes, record.queues) == ("deploy", ("submit", "read"), ("docs", "mail"))
    assert (record.created_by, record.state, record.last_used_at) == ("ada", TokenState.LIVE, None)
    assert record.expires_at is not None
    assert (record.expires_at - record.created_at).total_seconds() == 90 * DAY_S
    (found,) = engine.run(tokens_of_hashes([hash_of(made.token), hash_of("another")])).values()
    assert (found.id, found.grant.queues) == (record.id, frozenset({"docs", "mail"}))
    assert made.token not in repr(made) + repr(record)


def test_the_next_token_of_a_name_lives_beside_the_one_before(engine: AnyEngine) -> None:
    verbs = Client(engine).tokens
    old, other = verbs.create("deploy", scopes=["admin"], expires_s=None), verbs.create("a", scopes=["read"])
    new = verbs.create("deploy", scopes=["admin"])

    assert [each.id for each in verbs.known()] == [other.record.id, new.record.id, old.record.id]
    assert {each.state for each in verbs.known()} == {TokenState.LIVE}
    assert old.record.expires_at is None
    verbs.revoke(old.record.id)
    assert [each.state for each in verbs.known()] == [TokenState.LIVE, TokenState.LIVE, TokenState.REVOKED]


def test_who_revokes_what_is_over_is_told_why(engine: AnyEngine, clock: DatabaseClock) -> None:
    verbs = Client(engine, actor="ada").tokens
    first, second = (verbs.create("deploy", scopes=["read"], expires_s=3600).record for _ in range(2))

    revoked = verbs.revoke(first.id)

    assert (revoked.state, revoked.revoked_by) == (TokenState.REVOKED, "ada")
    with pytest.raises(TokenOver, match="revoked by ada"):
        Client(engine, actor="bob").tokens.revoke(first.id)
    clock.advance(3601)
    with pytest.raises(TokenOver, match="it expired"):
        verbs.revoke(second.id)
    assert [each.revoked_by for each in verbs.known() if each.id in (first.id, second.id)].count("ada") == 1
    with pytest.raises(TokenNotFound):
        verbs.revoke(new_id())


def test_a_repeated_create_stores_one_token(engine: AnyEngine) -> None:
    wanted = WantedToken(new_id(), "deploy", hash_of("any"), (Scope.READ,), None, 60.0)

    first, second = (engine.run(create(wanted, actor=actor)) for actor in ("ada", "bob"))

    assert first.created_by == second.created_by == "ada"
    assert len(Client(engine).tokens.known()) == 1


def test_of_several_gateways_one_notes_a_use_and_a_clock_that_went_back_keeps_none_from_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    token = Client(engine).tokens.create("deploy", scopes=["read"]).record

    assert [engine.run(note_use([token.id], fresh_s=60.0)) for _ in range(2)] == [1, 0]
    clock.advance(-3600)
    assert [engine.run(note_use([token.id], fresh_s=60.0)) for _ in range(2)] == [1, 0]


@pytest.mark.parametrize(
    "given",
    [
        {"scopes": []},
        {"scopes": "submit"},
        {"scopes": ["write"]},
        {"scopes": [None]},
        {"scopes": [["read"]]},
        {"scopes": 3},
        {"scopes": ["admin", "read"], "queues": ["mail"]},
        {"queues": []},
        {"queues": "mail"},
        {"queues": ["a\nb"]},
        {"queues": [f"q{number}" for number in range(101)]},
        {"expires_s": 59},
        {"expires_s": float("nan")},
        {"expires_s": 3651 * DAY_S},
        {"expires_s": "soon"},
        {"name": ""},
        {"name": "a\x1b"},
        {"name": "x" * 101},
        {"name": None},
    ],
    ids=str,
)
def test_what_cannot_be_a_token_stores_nothing(lite: SqliteEngine, given: dict[str, Any]) -> None:
    name, more = given.get("name", "deploy"), {key: each for key, each in given.items() if key != "name"}

    with pytest.raises(InvalidInput):
        Client(lite).tokens.create(name, **{"scopes": ["read"], **more})

    assert Client(lite).tokens.known() == []


async def test_async_code_does_the_same(engine: AnyEngine) -> None:
    verbs = Client(engine).tokens

    made = await verbs.acreate("deploy", scopes=["read"])
    revoked = await verbs.arevoke(made.record.id)

    assert [each.id for each in await verbs.aknown()] == [revoked.id]
    assert made.token not in str(revoked)


def test_what_is_over_for_long_is_removed(engine: AnyEngine, clock: DatabaseClock) -> None:
    verbs = Client(engine).tokens
    expired, revoked, live = (
        verbs.create(name, scopes=["read"], expires_s=expires_s).record
        for name, expires_s in (("a", 60), ("b", None), ("c", None))
    )
    verbs.revoke(revoked.id)
    purges = WING.purges(engine, CoreConfig(), Telemetry())

    clock.advance(29 * DAY_S)
    asyncio.run(_run(purges))
    assert len(verbs.known()) == 3
    clock.advance(2 * DAY_S)
    asyncio.run(_run(purges))
    assert [each.id for each in verbs.known()] == [live.id]
    with pytest.raises(TokenNotFound):
        verbs.revoke(expired.id)


async def _run(purges: Sequence[Purge]) -> None:
    for purge in purges:
        await purge()
