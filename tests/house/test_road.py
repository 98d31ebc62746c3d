"""A feature is a folder: one is added here that touches no file of the core (tests/house/receipts).

What the road does not let through yet is marked with the reason. Whoever opens it there takes the mark away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from fencerow import App, Config
from fencerow.cli.grants import grants
from fencerow.core import offered, wing
from fencerow.core.client.forms import COPY_ROWS_MIN
from fencerow.core.errors import ConfigError, DeclarationError, FencerowError, InvalidInput
from fencerow.core.model.job import KeyClaim
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.schema import rooms
from fencerow.core.store import store, tables, terms
from fencerow.core.store.attempts import Success
from fencerow.core.store.following import FollowedSuccess
from fencerow.core.store.points import POINTS
from fencerow.core.telemetry import Telemetry
from fencerow.db import query_files
from fencerow.doctor.examine import examine
from fencerow.options import GivenOptions, GivenSubmitOptions
from fencerow.retention.maintenance import MaintenanceChore
from fencerow.unique.rules import UniqueClaim, UniqueRule
from tests.core.store.stage import Placed, rows, succeed, table
from tests.house.receipts.wing import WING, counted
from tests.kit.asked import as_unique
from tests.kit.jobs import AnyEngine, new_job, register, running

PLEASE = {"receipts": "please"}


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """A program of which receipts are a part, on a fresh database."""
    monkeypatch.setattr(rooms, "_of_wings", [*rooms._of_wings, *WING.queries])
    monkeypatch.setattr(wing, "_wings", (*wing.wings(), WING))
    told(monkeypatch)
    _forget_queries()
    path = "sqlite_path" if request.param == "sqlite" else "empty_postgres_url"
    place = str(request.getfixturevalue(path))
    with App(f"sqlite:///{place}" if request.param == "sqlite" else place, actor="test") as made:
        made.migrate()
        yield made
    _forget_queries()


def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `build` tells the core of a wing."""
    assert WING.offers is not None
    monkeypatch.setitem(terms._of_wings, WING.name, WING.stored)
    monkeypatch.setitem(offered._offers, WING.name, offered.Offer(frozenset(WING.options), WING.offers))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, sqlite_path: Path) -> Iterator[App]:
    """The same on a file that nothing comes to."""
    told(monkeypatch)
    with App(f"sqlite:///{sqlite_path}", actor="test") as made:
        yield made


def _forget_queries() -> None:
    tables.postgres_queries.cache_clear()
    tables.sqlite_queries.cache_clear()


def engine_of(app: App) -> AnyEngine:
    return cast("AnyEngine", app.engine)


def wishes(engine: AnyEngine) -> dict[str, object]:
    found = rows(engine, f"SELECT job_id, wish FROM {table(engine, 'receipts')}")
    return {str(row["job_id"]): row["wish"] for row in found}


def receipts(engine: AnyEngine) -> list[object]:
    return [row["state"] for row in rows(engine, f"SELECT state FROM {table(engine, 'receipts')}")]


def test_an_end_of_every_kind_signs_the_receipt_and_a_revive_takes_that_back(app: App) -> None:
    engine = engine_of(app)
    job = running(engine, holder := register(engine), terms=PLEASE)

    assert succeed(engine, Placed(job.id, holder, job.attempt))
    assert receipts(engine) == ["succeeded"]
    engine.run(store.revive(job.id, actor="ada"))
    assert receipts(engine) == [None]
    engine.run(store.cancel(job.id, actor="ada"))
    assert receipts(engine) == ["cancelled"]


def test_whoever_brings_it_says_whether_an_end_is_announced(app: App) -> None:
    engine = engine_of(app)
    holder = register(engine)
    plain, other = running(engine, holder), running(engine, holder, terms=PLEASE)

    told = engine.run(
        store.succeed([Success(job.id, job.attempt, "1") for job in (plain, other)], holder=holder)
    )

    assert {moved.id: moved.awaited for moved in told} == {plain.id: False, other.id: True}


def test_its_table_its_line_of_the_doctor_and_its_purge_need_nothing_else(app: App) -> None:
    engine = engine_of(app)
    job = running(engine, holder := register(engine), terms=PLEASE)
    succeed(engine, Placed(job.id, holder, job.attempt))

    found = {each.name: each.found for each in examine(Config(url=app.config.url))}
    assert found["receipts"] == "1 signed"

    async def purged() -> None:
        await MaintenanceChore(engine, app.config, Telemetry()).round()
        await engine.aclose()

    asyncio.run(purged())
    assert engine.run(counted()) == 0


def test_an_option_of_a_submit_is_its_own(app: App) -> None:
    def send(to: str) -> None: ...

    declare: Any = app.job
    job = declare(receipt="declared")(send)
    ids = [
        job.submit("a").id,
        job.using(receipt="said").submit("b").id,
        job.using(receipt=lambda to: to).submit("computed").id,
        job.using(receipt=lambda to: None).submit("d").id,
        job.using(receipt=False).submit("e").id,
    ]

    assert wishes(engine_of(app)) == dict(zip(ids, ["declared", "said", "computed"], strict=False))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"receipt": 7}, "receipt is of type int"),
        ({"receipt": "please", "ephemeral": True}, "ephemeral"),
        ({"receipt": lambda somebody: somebody}, "the function in receipt="),
        ({"reciept": "please"}, "did you mean receipt"),
    ],
)
def test_an_option_that_cannot_be_is_refused_at_the_door(bare: App, wrong: dict[str, Any], said: str) -> None:
    def send(to: str) -> None: ...

    declare: Any = bare.job
    with pytest.raises(FencerowError, match=said):
        declare(**wrong)(send).submit("ada")
    with pytest.raises(InvalidInput, match=said):
        declare(name="other")(send).using(**wrong).submit("ada")


def test_a_function_in_an_option_is_looked_at_where_the_job_is_declared(bare: App) -> None:
    def send(to: str) -> None: ...

    declare: Any = bare.job
    with pytest.raises(DeclarationError, match="the function in receipt="):
        declare(receipt=lambda somebody: somebody)(send)


def test_type_checkers_know_the_options_of_all_wings() -> None:
    offers = {name for each in wing.wings() for name in each.options}

    assert offers
    assert offers <= GivenSubmitOptions.__annotations__.keys()
    assert offers <= GivenOptions.__annotations__.keys()


def test_a_role_that_only_submits_is_granted_what_the_options_of_wings_write() -> None:
    """`flows` has a part of its own there: whoever submits flows may do more."""
    silent = {each.name for each in wing.wings() if each.stored is not None and not each.granted}

    assert silent == {"flows"}
    assert 'ON "a".handovers TO "b";' in grants("a", worker="w", submit="b")


def test_it_writes_where_jobs_are_stored_in_whichever_form(app: App) -> None:
    engine, client = engine_of(app), app.client
    one, keyed, own, among, borrowed, follower = (new_job(terms=wish) for wish in [PLEASE] * 6)
    holder = register(engine)
    leader = running(engine, holder)
    many = [Submission(new_job()) for _ in range(COPY_ROWS_MIN)]  # by COPY on PostgreSQL

    client.submit([Submission(one)])
    client.submit(
        [
            Submission(
                keyed, key=KeyClaim(scope="s", key="k", job_id=keyed.id, fingerprint="f", lifetime_s=60.0)
            )
        ]
    )
    client.submit([Submission(own, own_id=True)])
    client.submit([*many, Submission(among)])
    with engine.session() as session:
        client.submit([Submission(borrowed)], connection=session.connection)
    success = FollowedSuccess(Success(leader.id, leader.attempt, "1"), [Submission(follower)])
    engine.run(store.succeed_with_follow_ups([success], holder=holder))

    assert set(wishes(engine)) == {each.id for each in (one, keyed, own, among, borrowed, follower)}


def test_what_is_stored_again_is_written_once_and_a_replaced_job_as_it_is_now(app: App) -> None:
    engine = engine_of(app)
    claim = UniqueClaim(scope="s", key="u", rule=UniqueRule(replaces=True))
    first, second = new_job(terms=PLEASE), new_job(terms={"receipts": "now"})

    app.client.submit([as_unique(first, claim)])
    engine.run(store.resubmit([first]))
    assert wishes(engine) == {first.id: "please"}
    app.client.submit([as_unique(second, claim)])
    assert wishes(engine) == {first.id: "now"}


def test_a_wing_that_raises_fails_its_own_submit_alone(app: App) -> None:
    impossible, plain = new_job(terms={"receipts": "impossible"}), new_job()
    unknown = new_job(terms={"recipes": "please"})

    async def submitted() -> list[object]:
        each = (app.client.asubmit([Submission(job)]) for job in (impossible, unknown, plain))
        answers: list[object] = [*await asyncio.gather(*each, return_exceptions=True)]
        await app.aclose()
        return answers

    raised, refused, stored = asyncio.run(submitted())
    assert isinstance(raised, LookupError) and "'recipes'" in str(refused)
    assert stored == [SubmitResult(plain.id)]
    found = engine_of(app).run(store.existing([impossible.id, unknown.id, plain.id]))
    assert found == {plain.id}


def test_what_all_bring_stands_in_the_order_of_the_wings() -> None:
    for dialect in ("postgres", "sqlite"):
        text = POINTS.filled(rooms.packages(), dialect)["when jobs have ended"]
        places = [text.index(table) for table in ("fencerow.handovers", "fencerow.sagas", "fencerow.events")]
        assert places == sorted(places), dialect


@pytest.mark.parametrize(
    ("brought", "said"),
    [
        ({"when jobs have ender": "a"}, "points are 'when jobs have ended'"),
        ({"when jobs have ended": "a AS (SELECT :holder)"}, "parameter :holder"),
        ({}, "0 packages bring something to 'where it waits'"),
        ({"where it waits": "gate"}, "2 packages bring something to 'where it waits'"),
    ],
)
def test_what_cannot_stand_at_a_point_is_refused(
    monkeypatch: pytest.MonkeyPatch, brought: dict[str, str], said: str
) -> None:
    monkeypatch.setattr(query_files, "brought", lambda *_: brought)

    with pytest.raises(ConfigError, match=said):
        POINTS.filled(["fencerow.core.store", "fencerow.core.store"], "postgres")
