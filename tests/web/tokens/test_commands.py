"""`fencerow tokens`: the token alone on the standard output, and never anywhere else."""

from __future__ import annotations

import pytest

from fencerow import Client
from fencerow.core.config import CoreConfig
from fencerow.core.model.defaults import DAY_S
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.clock import DatabaseClock
from fencerow.web.tokens.checks import examine_tokens
from fencerow.web.tokens.operations import note_use
from fencerow.web.tokens.secret import known_shape
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine

SOMEBODYS = "fct_" + "Zm9v" * 10 + "YmE"


def test_a_token_is_printed_once_and_alone(cli: Cli, url: str) -> None:
    made = cli("tokens", "create", "deploy", "--scope", "read", "--scope", "submit", "--queue", "mail")
    token = made.out.removesuffix("\n")
    listed = cli("tokens")
    (found,) = cli("tokens", "--json").json
    revoked = cli("tokens", "revoke", found["id"])
    again = cli("tokens", "revoke", found["id"])

    assert (made.code, known_shape(token)) == (0, True)
    assert "deploy: submit, read in mail" in made.err and found["id"] in made.err
    assert all(each in listed.out for each in (found["id"], "submit, read", "mail", "live", "in 90 d"))
    assert (found["state"], found["scopes"], found["last_used_at"]) == ("live", ["submit", "read"], None)
    assert (revoked.code, again.code, again.error) == (0, 1, "FR-851")
    others = (made.err, listed.out, str(found), revoked.out, again.err, cli("tokens", "--json").out)
    assert all(token not in each for each in others)


def test_a_program_gets_all_of_it_in_one_document(cli: Cli, url: str) -> None:
    made = cli("tokens", "create", "root", "--scope", "admin", "--never-expires", "--json")

    assert known_shape(made.json["token"])
    assert (made.json["expires_at"], made.json["queues"], made.err) == (None, None, "")


@pytest.mark.parametrize(
    "words",
    [
        ("create", "a"),
        ("create", "a", "--scope", "write"),
        ("create", "a", "--scope", "read", "--expires", "soon"),
        ("create", "a", "--scope", "read", "--expires", "30d", "--never-expires"),
        ("create", "a", "--scope", "read", "--expires", "1s"),
        ("create", "a", "--scope", "admin", "--queue", "mail"),
        ("revoke", "nonsense"),
        ("create", SOMEBODYS, "--scope", "read"),
        ("revoke", SOMEBODYS),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_and_no_token_comes_back(
    cli: Cli, lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")

    refused = cli("tokens", *words)

    assert (refused.code, refused.error) == (2, "FR-201")
    assert SOMEBODYS not in refused.err
    assert Client(lite).tokens.known() == []


@pytest.mark.parametrize(
    ("said", "seconds"), [("30d", 30 * DAY_S), ("12h", 43_200), ("90min", 5_400), ("60s", 60)]
)
def test_when_it_expires_is_said_with_a_unit(
    cli: Cli, lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch, said: str, seconds: float
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")

    cli("tokens", "create", "a", "--scope", "read", "--expires", said)

    (found,) = Client(lite).tokens.known()
    assert found.expires_at is not None
    assert (found.expires_at - found.created_at).total_seconds() == seconds


def test_doctor_warns_of_what_expires_in_use_and_of_what_opens_all_for_ever(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    verbs = Client(engine).tokens
    used, unused, _young = (
        verbs.create(name, scopes=["read"], expires_s=days * DAY_S).record
        for name, days in (("used", 20), ("unused", 20), ("young", 90))
    )
    root = verbs.create("root", scopes=["admin"], expires_s=None).record
    verbs.create("reader", scopes=["read"], expires_s=None)
    clock.advance(5 * DAY_S)
    engine.run(note_use([used.id], fresh_s=60.0))

    def found() -> list[str]:
        return [each.found for each in examine_tokens(engine, CoreConfig())]

    assert found() == ["5 are live", f"root ({root.id}) may do everything, and never expires"]
    clock.advance(2 * DAY_S)
    assert found() == [
        "5 are live",
        f"used ({used.id}) is used, and expires in 12 days",
        f"root ({root.id}) may do everything, and never expires",
    ]
    for each in (used, root):
        verbs.revoke(each.id)
    assert found() == ["3 are live"]
    assert unused.id not in str(found())
