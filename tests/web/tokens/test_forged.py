"""Rows of tokens that our own code never writes: nobody passes with one, and it stops no other."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from fencerow import Client
from fencerow.core.config import CoreConfig
from fencerow.db.sqlite import SqliteEngine
from fencerow.web.tokens.checks import examine_tokens
from fencerow.web.tokens.known import KnownTokens
from fencerow.web.tokens.record import TokenState
from tests.kit.jobs import AnyEngine

# In both dialects, where a list is written in its own way.
REFUSED = (
    *("name = ''", "hash = 'ABC'", "created_by = ''", "revoked_by = 'ada'", "scopes = {none}"),
    *("scopes = {unknown}", "queues = {none}", "scopes = {admin}", "expires_at = created_at"),
)
REFUSED_BY = {
    "postgres": (
        *("expires_at = 'infinity'", "last_used_at = '-infinity'", "revoked_at = 'infinity'"),
        *("queues = '{a,NULL}'", "queues = '{{a},{b}}'", "scopes = '{{read}}'", "scopes = '{read,NULL}'"),
    ),
    "sqlite": (
        *(
            "expires_at = 'soon'",
            "revoked_at = 0.5",
            "last_used_at = 'x'",
            "created_at = 'x'",
            "name = x'00'",
        ),
        *("queues = 'mail'", "scopes = '{\"read\": 1}'", "created_by = x'00'", "hash = x'00'"),
    ),
}
LISTS = {
    "postgres": {"none": "'{}'", "unknown": "'{write}'", "admin": "'{admin}'"},
    "sqlite": {"none": "'[]'", "unknown": "'[\"write\"]'", "admin": "'[\"admin\"]'"},
}


def write(engine: AnyEngine, change: str) -> None:
    table = "fencerow.api_tokens" if engine.dialect == "postgres" else "fencerow_api_tokens"
    with engine.session() as session:
        session.connection.execute(f"UPDATE {table} SET {change} WHERE name = 'bad'")


def test_the_table_refuses_what_no_token_has(engine: AnyEngine) -> None:
    verbs = Client(engine).tokens
    made = verbs.create("bad", scopes=["read"], queues=["mail"]).record
    changes = [each.format(**LISTS[engine.dialect]) for each in REFUSED] + list(REFUSED_BY[engine.dialect])

    for change in changes:
        with pytest.raises(Exception, match=r"(?i)check|json") as refused:
            write(engine, change)
        assert isinstance(refused.value, psycopg.errors.CheckViolation) or engine.dialect == "sqlite", change

    (found,) = verbs.known()
    assert (found.scopes, found.queues, found.expires_at) == (made.scopes, made.queues, made.expires_at)


@pytest.mark.parametrize(
    ("change", "damaged"),
    [
        ("queues = '[1]'", "queues"),
        ("queues = '[null]'", "queues"),
        (f"queues = '{'[' * 900}\"x\"{']' * 900}'", "queues"),
        ("scopes = '[[\"read\"]]'", "scopes"),
    ],
)
async def test_what_cannot_be_read_lets_nobody_pass_and_hides_no_other(
    lite: SqliteEngine, change: str, damaged: str
) -> None:
    client = Client(lite)
    bad, good = [await client.tokens.acreate(name, scopes=["read"]) for name in ("bad", "good")]
    write(lite, change)
    known = KnownTokens(client, cache_s=5.0)

    grants = [await known.grant_of(each.token) for each in (bad, good)]
    states = {each.name: each.state for each in await client.tokens.aknown()}
    told = [each.found for each in await asyncio.to_thread(lambda: list(examine_tokens(lite, CoreConfig())))]
    revoked = await client.tokens.arevoke(bad.record.id)
    await known.aclose()

    assert [grant and grant.name for grant in grants] == [None, "good"]
    assert states == {"bad": TokenState.UNREADABLE, "good": TokenState.LIVE}
    assert told[0] == "1 is live" and told[1].startswith(f"bad ({bad.record.id}): {damaged} cannot be read")
    assert revoked.revoked_at is not None
