"""A token is a secret: it stands in no log, no error, no repr and no file. And who may touch the table."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator

import psycopg
import pytest

from fencerow import App, Client, FencerowError
from fencerow.cli import grants
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from fencerow.web.tokens.known import KnownTokens


async def test_it_is_told_nowhere(lite: SqliteEngine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = Client(lite, actor="ada")
    made = await client.tokens.acreate("deploy", scopes=["read"])
    known = KnownTokens(client, cache_s=0.0)
    told: list[object] = []
    told += [await known.grant_of(made.token), made, made.record, await client.tokens.aknown()]
    await client.tokens.arevoke(made.record.id)
    told.append(await known.grant_of(made.token))
    for wrong in (
        client.tokens.arevoke(made.record.id),
        client.tokens.arevoke(made.token),
        client.tokens.acreate(made.token, scopes=["read"]),
        client.tokens.acreate("a", scopes=[made.token[:20]]),
    ):
        with pytest.raises(FencerowError) as caught:
            await wrong
        told.append("".join(traceback.format_exception(caught.value)))
    await known.aclose()
    await lite.aclose()

    secret = made.token.removeprefix("fct_")
    assert secret not in caplog.text + "".join(map(repr, told)) + "".join(map(str, told))
    assert "deploy" in caplog.text  # that a revoked one was refused is told by its name
    files = [each.read_bytes() for each in lite.path.parent.iterdir() if each.is_file()]
    assert files and not any(secret.encode() in each for each in files)


@pytest.fixture
def roles(server: PostgresServer, postgres_url: str) -> Iterator[dict[str, str]]:
    """The roles that are printed, the submitter with all that it can be given besides; and one that judges tokens."""
    database = postgres_url.split("@/")[1].split("?")[0]
    judge = (
        "GRANT USAGE ON SCHEMA {schema} TO {role};",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};",
        "GRANT SELECT ON {schema}.schema_migrations TO {role};",
        "GRANT SELECT, UPDATE (last_used_at) ON {schema}.api_tokens TO {role};",
    )
    lines = {
        "submit": (*grants.SUBMIT, *grants.KEYED, *grants.REPEATED, *grants.UNIQUE, *grants.PUBLISH),
        "worker": grants.WORKER,
        "judge": judge,
    }
    with server.connect(database) as connection:
        for name, granted in lines.items():
            connection.execute(f"CREATE ROLE {name}_{database} LOGIN".encode())
            for line in grants.filled(granted, "fencerow", f"{name}_{database}"):
                connection.execute(line.encode())
        yield {name: server.conninfo(database, f"{name}_{database}") for name in lines}
        for name in lines:
            connection.execute(f"DROP OWNED BY {name}_{database}; DROP ROLE {name}_{database}".encode())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM fencerow.api_tokens",
        "SELECT hash FROM fencerow.api_tokens",
        "UPDATE fencerow.api_tokens SET expires_at = NULL",
        "DELETE FROM fencerow.api_tokens",
        "INSERT INTO fencerow.api_tokens (id, name, hash) VALUES (gen_random_uuid(), 'me', repeat('0', 64))",
    ],
)
def test_who_only_submits_neither_sees_a_token_nor_makes_one(roles: dict[str, str], text: str) -> None:
    with (
        psycopg.connect(roles["submit"], autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(text.encode())


def test_a_gateway_judges_tokens_with_what_the_page_says_it_needs(roles: dict[str, str]) -> None:
    with App(roles["worker"]) as app:
        made = app.client.tokens.create("deploy", scopes=["read"])

    async def judged() -> object:
        async with App(roles["judge"]) as app:
            known = KnownTokens(Client(app.engine), cache_s=5.0)
            grant = await known.grant_of(made.token)
            while known._noting is not None:
                await asyncio.sleep(0)
            return grant

    assert asyncio.run(judged()) is not None
    with App(roles["worker"]) as app:
        (found,) = app.client.tokens.known()
        assert found.last_used_at is not None
        app.client.tokens.revoke(found.id)
