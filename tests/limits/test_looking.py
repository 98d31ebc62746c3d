"""Who has the turns of a limit and who waits, in the views and in `why`."""

from __future__ import annotations

import pytest

from fencerow import Client
from fencerow.doctor.why import why
from fencerow.limits import Breaker, Limit, Rate
from fencerow.limits.errors import UnknownLimit
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.jobs import AnyEngine, claim, register
from tests.limits.test_breaker import fail
from tests.limits.test_named import define, hand_over, limited
from tests.limits.test_queues import bounded, many

cli, url = command_line.cli, command_line.url  # fixtures


def test_show_names_who_has_the_turns_since_when_and_who_waits(engine: AnyEngine, cli: Cli, url: str) -> None:
    define(engine, Limit("a", at_once=2))
    ids = limited(engine, "a", count=4)
    hand_over(engine)
    claim(engine, register(engine), limit=1)

    document = cli("limits", "show", "a", "--json").json
    assert [(each["id"], each["state"]) for each in document["holders"]] == [
        (ids[0], "running"),
        (ids[1], "queued"),
    ]
    assert [each["id"] for each in document["waiting"]] == ids[2:]
    assert (document["waiting_count"], document["room"], document["why"]) == (2, 0, "2 of 2 run")
    shown = cli("limits", "show", "a", "--waiting", "1").out
    assert all(each in shown for each in ids[:3]) and ids[3] not in shown
    assert "when one ends: 2 of 2 run" in shown and "to be claimed" in shown


def test_each_key_is_shown_for_itself_and_a_queue_by_what_runs(engine: AnyEngine, cli: Cli, url: str) -> None:
    define(
        engine,
        Limit("t", at_once=1, per_key=True),
        Limit("t/big", at_once=5),
        Limit("queue:other", at_once=1),
    )
    (holder,) = limited(engine, "t/x")
    hand_over(engine)
    many(engine, 2, "other")
    (running,) = bounded(engine, register(engine), queue="other").jobs
    known = Client(engine).limits

    assert [each.id for each in known.look("t/x").holders] == [holder]
    assert known.look("t/x").room.count == 0 and known.look("t/y").room.count == 1
    assert known.look("t/big").limit.limit.at_once == 5
    assert [each.id for each in known.look("queue:other").holders] == [running.id]
    for nobody in ("u", "u/x", "queue:mail"):
        with pytest.raises(UnknownLimit):
            known.look(nobody)
    assert "t/x" in cli("limits", "show", "t/x").out
    assert cli("limits", "show", "u/x").error == "FR-791"


def test_why_names_who_has_the_turns_and_what_else_keeps_a_limit_from_giving_one(engine: AnyEngine) -> None:
    define(engine, Limit("a", at_once=1), Limit("b", rate=Rate(1, per_s=600)), Limit("c", breaker=Breaker(1)))
    ids = {name: limited(engine, name, count=2) for name in "abc"}
    hand_over(engine)
    holder = register(engine)
    claim(engine, holder, limit=9)
    fail(engine, holder, ids["c"][0])
    (waiting,) = limited(engine, "c")
    hand_over(engine)

    found = {name: engine.run(why(ids[name][1])).summary for name in "ab"}
    assert f"the limit a lets none start now: 1 of 1 run; job {ids['a'][0]}" in found["a"]
    assert "the rate is 1/600s; there may be one in " in found["b"]
    open_ = engine.run(why(waiting)).summary
    assert "its breaker is open" in open_ and "there may be one in" in open_
