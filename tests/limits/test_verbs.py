"""Limits are made, changed and removed while everything runs: by the API, by the command, and as code declares them."""

from __future__ import annotations

import pytest

from fencerow import App, Client, InvalidInput
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit, Rate, limits
from fencerow.limits.errors import LimitConflict, UnknownLimit
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.doctor.test_doctor import finding
from tests.kit import jobs

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine


def test_a_limit_is_made_changed_and_removed(engine: AnyEngine) -> None:
    known = Client(engine, actor="ada").limits

    assert known.known() == []
    assert known.define(Limit("queue:github", at_once=3), reason="the contract") is True
    assert known.define(Limit("queue:github", at_once=3)) is False
    assert known.define(Limit("queue:github", rate=Rate(1))) is True

    (found,) = known.known()
    assert known.get("queue:github").definition == found.definition
    assert (found.limit, found.revision, found.set_by, found.reason) == (
        Limit("queue:github", rate=Rate(1)),
        2,
        "ada",
        None,
    )
    known.remove("queue:github")
    assert known.known() == []
    with pytest.raises(UnknownLimit, match="queue:github"):
        known.remove("queue:github")
    with pytest.raises(UnknownLimit):
        known.get("queue:github")
    with pytest.raises(InvalidInput):
        known.define("queue:github")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        known.define(Limit("queue:x", at_once=1), reason="")


def test_of_two_changes_at_once_one_wins_and_the_other_is_told(engine: AnyEngine) -> None:
    engine.run(limits.define(Limit("queue:x", at_once=1), actor=None, reason=None))
    first, second = Limit("queue:x", at_once=2), Limit("queue:x", at_once=3)

    assert engine.run(limits.redefine(first, revision=1, actor=None, reason=None)) is True
    assert engine.run(limits.redefine(second, revision=1, actor=None, reason=None)) is False
    assert engine.run(limits.remove("queue:x", revision=1)) is False
    assert [each.limit for each in engine.run(limits.read_limits())] == [first]


def app_with(url: str, *declared: Limit) -> App:
    return App(url, limits=declared)


def test_what_people_have_set_stays_until_the_declaration_has_a_higher_version(
    engine: AnyEngine, url: str
) -> None:
    with app_with(url, Limit("queue:x", at_once=1), Limit("queue:y", at_once=1)) as app:
        assert app.declare_limits() == ["queue:x", "queue:y"]
        assert app.declare_limits() == []
        app.client.limits.define(Limit("queue:x", at_once=9))
        assert app.declare_limits() == []
        assert app.client.limits.get("queue:x").limit.at_once == 9

    with app_with(url, Limit("queue:x", at_once=2, version=2)) as newer:
        assert newer.declare_limits() == ["queue:x"]
        assert newer.client.limits.get("queue:x").limit == Limit("queue:x", at_once=2, version=2)

    with app_with(url, Limit("queue:x", at_once=1)) as older:
        assert older.declare_limits() == []  # a deploy rolls: the older program changes nothing back
        assert older.client.limits.get("queue:x").limit.at_once == 2


def test_two_programs_that_contradict_each_other_are_told(engine: AnyEngine, url: str) -> None:
    with app_with(url, Limit("queue:x", at_once=1)) as app:
        app.declare_limits()

    with app_with(url, Limit("queue:x", at_once=2)) as other:
        other.job(name="send")(lambda: None)

        with pytest.raises(LimitConflict, match="2 at once` here, and as `1 at once") as refused:
            other.worker()
        assert "version=2" in refused.value.fix
        assert other.client.limits.get("queue:x").limit.at_once == 1


def test_the_command_makes_changes_shows_and_removes_limits(cli: Cli, url: str, engine: AnyEngine) -> None:
    assert cli("limits").out == "(no limit is defined)\n"

    made = cli(
        "limits",
        "set",
        "queue:github",
        "--at-once",
        "3",
        "--rate",
        "100/min",
        "--burst",
        "5",
        "--reason",
        "new",
    )
    more = cli("limits", "set", "queue:github", "--hours", "mon-fri 09:00-17:00 Europe/Berlin")
    less = cli("limits", "set", "queue:github", "--rate", "none", "--json")
    same = cli("limits", "set", "queue:github", "--at-once", "3")

    assert made.out == "queue:github: 3 at once; 100/min, burst 5\n"
    assert "open mon-fri 09:00-17:00 Europe/Berlin" in more.out
    assert less.json["rate"] is None and less.json["changed"]
    assert "so already" in same.out
    (found,) = Client(engine).limits.known()
    assert found.limit == Limit(
        "queue:github",
        at_once=3,
        hours="mon-fri 09:00-17:00 Europe/Berlin",
    )
    shown = cli("limits", "show", "queue:github")
    assert "Europe/Berlin" in shown.out
    document = cli("limits", "show", "queue:github", "--json").json
    assert cli("limits", "--json").json[0].items() <= document.items()
    assert cli("limits", "remove", "queue:github").out == "queue:github is removed\n"
    assert cli("limits", "remove", "queue:github").error == "FR-791"


@pytest.mark.parametrize(
    "words",
    [
        ("queue:x",),
        ("queue:x", "--at-once", "0"),
        ("queue:x", "--at-once", "many"),
        ("queue:x", "--rate", "-1/s"),
        ("queue:x", "--burst", "3"),
        ("queue:x", "--at-once", "3", "--per-key"),
        ("a b", "--at-once", "1"),
    ],
)
def test_the_command_refuses_what_makes_no_sense_and_stores_nothing(
    cli: Cli, url: str, words: tuple[str, ...]
) -> None:
    assert cli("limits", "set", *words).error == "FR-201"
    assert cli("limits", "set", "queue:x", "--hours", "9 to 5").error == "FR-822"
    assert cli("limits", "--json").json == []


def test_a_row_that_was_changed_by_hand_is_told_by_the_doctor_and_can_be_set_anew(
    cli: Cli, url: str, engine: AnyEngine
) -> None:
    cli("limits", "set", "queue:mail", "--at-once", "1")
    engine.run(limits.redefine(Broken(), revision=1, actor=None, reason=None))  # type: ignore[arg-type]
    jobs.submit(engine)

    found = engine.run(limits.bound_claim(jobs.QUEUE, 5, lambda _: pytest.fail("nothing may start")))

    assert (found.jobs, found.room) == ([], 0)
    assert "queue:mail" in finding(cli("doctor", "--json"), "limit")["found"]
    assert "cannot be read" in cli("limits").out or "at_once" in cli("limits").out
    assert cli("limits", "set", "queue:mail", "--at-once", "1").code == 0
    assert cli("limits", "show", "queue:mail", "--json").json["at_once"] == 1


class Broken:
    """What somebody wrote into the row."""

    name = "queue:mail"
    breaker = None

    def document(self) -> str:
        return '{"at_once":-1}'
