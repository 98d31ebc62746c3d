"""A submit makes the limits that it names and its own app declares, where nobody has made them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fencerow import App
from fencerow.cli import grants
from fencerow.errors import UnknownLimit
from fencerow.limits import Limit
from fencerow.testing.postgres import PostgresServer
from tests.cli import conftest as command_line
from tests.kit.jobs import AnyEngine

url = command_line.url  # a fixture

LIMITS = [Limit("github", at_once=1), Limit("mail", at_once=1, per_key=True), Limit("queue:x", at_once=1)]


def declared(app: App) -> Any:
    @app.job(limits=("github", lambda to: f"mail/{to}"))
    def send(to: str) -> None: ...

    return send


def names(app: App) -> list[str]:
    return [each.name for each in app.client.limits.known()]


def test_a_submit_makes_what_it_names_and_nothing_else(engine: AnyEngine, url: str) -> None:
    with App(url, limits=LIMITS) as app:
        send = declared(app)
        send.submit("ada")
        assert names(app) == ["github", "mail"]

        app.client.limits.remove("github")
        app.submit_many([send.call("ada"), send.call("bob")])
        assert names(app) == ["github", "mail"], "who declares it means it"
        with pytest.raises(UnknownLimit, match="gitlab, which nobody defined"):
            send.using(limits="gitlab").submit("ada")
        with pytest.raises(UnknownLimit, match="names the limit mail"):
            send.using(limits="mail").submit("ada")

        assert len(app.client.list_jobs()) == 3


async def test_submits_that_go_together_make_it_too(engine: AnyEngine, url: str) -> None:
    async with App(url, limits=LIMITS) as app:
        send = declared(app)
        await asyncio.gather(*(send.asubmit(f"user-{number}") for number in range(20)))

        assert len(await app.client.alist_jobs()) == 20


def test_a_submit_in_a_transaction_makes_it_there(engine: AnyEngine, url: str) -> None:
    with App(url, limits=LIMITS) as app:
        send = declared(app)
        with engine.session() as session:
            send.using(connection=session.connection).submit("ada")

        assert len(app.client.list_jobs()) == 1
        assert names(app) == ["github", "mail"]


def test_a_role_that_may_not_make_it_is_told_who_can(server: PostgresServer, postgres_url: str) -> None:
    database = postgres_url.split("@/")[1].split("?")[0]
    role = f"limited_{database}"
    with server.connect(database) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        for line in grants.filled(grants.SUBMIT, "fencerow", role):
            connection.execute(line.encode())
        with App(server.conninfo(database, role), limits=LIMITS) as app:
            send = declared(app)
            with pytest.raises(UnknownLimit) as refused:
                send.submit("ada")
            with App(postgres_url, limits=LIMITS) as owner:
                owner.declare_limits()
            send.submit("ada")
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())

    assert "this program declares github, and could not make it" in refused.value.why
    assert "app.declare_limits()" in refused.value.fix
