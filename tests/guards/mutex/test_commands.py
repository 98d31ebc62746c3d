"""Looking at mutexes from the command line, and taking one from its holder; what doctor says of them."""

from __future__ import annotations

from fencerow.core.model.ids import new_id
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.guards.mutex import mutexes
from fencerow.guards.mutex.mutexes import MutexTaker
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.doctor.test_doctor import finding, levels

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine


def taken(engine: AnyEngine, key: str = "sp:1", job_id: str | None = None) -> str:
    holder = new_id()
    taker = MutexTaker(
        key, holder, 30.0, "h1", 7, "deal", job_id, 1 if job_id else None, "send" if job_id else None
    )
    assert engine.run(mutexes.make(taker)) == 1
    return holder


def test_held_ones_are_listed_and_shown(cli: Cli, url: str, engine: AnyEngine, clock: DatabaseClock) -> None:
    assert cli("mutexes").out == "(no mutex is held)\n"
    job_id = new_id()
    taken(engine, job_id=job_id)
    taken(engine, "sp:\x1b2")

    (first, second) = cli("mutexes", "list", "--json").json
    listed = cli("mutexes")
    shown = cli("mutexes", "show", "sp:1")

    assert (first["key"], first["state"], first["token"], first["job_id"]) == ("sp:1", "held", 1, job_id)
    assert (second["key"], second["host"], second["pid"]) == ("sp:\x1b2", "h1", 7)
    assert "\x1b" not in listed.out and "deal" in listed.out
    assert job_id in shown.out and "7 on h1" in shown.out and "30 s" in shown.out

    clock.advance(-31)
    taken(engine, "sp:3")
    clock.advance(31)  # the command sees a file by its own clock
    assert cli("mutexes", "show", "sp:3", "--json").json["state"] == "stale"


def test_one_is_taken_from_its_holder_and_it_is_kept_who_did_it(
    cli: Cli, url: str, engine: AnyEngine
) -> None:
    holder = taken(engine)

    other = cli("mutexes", "release", "sp:1", "--token", "9")
    done = cli("mutexes", "release", "sp:1", "--reason", "its host is gone")
    again = cli("mutexes", "release", "sp:1", "--json")

    assert (other.code, done.code, again.code) == (1, 0, 1)
    assert "nothing was changed" in other.out and "token 1" in done.out
    assert again.json == {"key": "sp:1", "token": 1, "released": False}
    assert engine.run(mutexes.release("sp:1", holder=holder, token=1)) is False
    shown = cli("mutexes", "show", "sp:1")
    assert "free" in shown.out and "its host is gone" in shown.out and " by " in shown.out


def test_what_was_never_taken_is_told(cli: Cli, url: str) -> None:
    for words in (("show", "sp:1"), ("release", "sp:1")):
        result = cli("mutexes", *words)
        assert (result.code, result.error) == (1, "FR-715")


def test_doctor_tells_of_stale_ones_and_of_those_of_the_dead(
    cli: Cli, url: str, engine: AnyEngine, clock: DatabaseClock
) -> None:
    assert levels(cli("doctor", "--json"))["mutexes"] == "ok"
    clock.advance(-31)
    taken(engine)
    clock.advance(31)
    taken(engine, "sp:2", new_id())

    result = cli("doctor", "--json")

    assert result.code == 0
    assert "sp:1 was not released" in finding(result, "stale mutex")["found"]
    assert "sp:2 is held for attempt 1" in finding(result, "mutex of the dead")["found"]
    assert levels(result)["mutex of the dead"] == "warn"


async def test_async_code_asks_the_same(engine: AnyEngine) -> None:
    from fencerow.client import Client

    taken(engine)
    client = Client(engine, actor="ann")

    (found,) = await client.mutexes.aheld()
    assert found == await client.mutexes.aget("sp:1") or found.key == "sp:1"
    assert await client.mutexes.afree("sp:1", found.token, reason="stuck")
    assert (await client.mutexes.aget("sp:1")).freed_by == "ann"
    assert await client.mutexes.aheld() == []
