"""Migrators of a user's database against each other, and against their own deaths: each migration once, none half."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, NoReturn

import pytest

from fencerow.db.run import Operation, Steps, execute
from fencerow.errors import RevertRefused
from fencerow.migrations.advance import (
    Advance,
    Aim,
    NotedMigration,
    OutsideTransaction,
    apply_next,
    finish,
    renew,
    revert_next,
)
from fencerow.migrations.judge import left_to_run
from fencerow.migrations.ledger import make, read
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.actor import Abandoned, Actor, Script
from fencerow_proof.arena.crash import Point, ending, points
from fencerow_proof.arena.race import Scenario, Story, explore
from fencerow_proof.explorer.violation import Violation
from tests.kit.databases import scratch_folder
from tests.proof.race.people import nothing
from tests.proof.race.shards import MIGRATIONS, ShardArena, ShardFile, aim, asked, cut, migration

MODES = ("plain", "held", "sqlite")
ROUNDS = 14  # a migrator tries on; an explorer must come to an end
STATEMENTS = 10  # of the first migration, ledger and all


@pytest.fixture(scope="module")
def shards(race_server: PostgresServer) -> Iterator[Mapping[str, Any]]:
    with scratch_folder() as folder:
        made: dict[str, ShardArena | ShardFile] = {
            "plain": ShardArena(race_server, "race_shard_plain", held=False),
            "held": ShardArena(race_server, "race_shard_held", held=True),
            "sqlite": ShardFile(folder / "shards.db"),
        }
        yield made
        for arena in made.values():
            arena.close()


@pytest.fixture(params=MODES)
def shard(request: pytest.FixtureRequest, shards: Mapping[str, Any]) -> Iterator[Any]:
    arena = shards[request.param]
    whole = arena.queries
    yield arena
    arena.queries = whole


@pytest.fixture
def explored(shard: Any, request: pytest.FixtureRequest, record_property: Any) -> Any:
    """Play a scenario and note it for the table."""

    def run(*scenarios: Scenario, share: int) -> None:
        limit = max(2, request.config.getoption("--orders") // share)
        reports = [explore(shard, scenario, limit=limit) for scenario in scenarios]
        together = replace(
            reports[0],
            played=sum(report.played for report in reports),
            total=sum(report.total for report in reports),
            seconds=sum(report.seconds for report in reports),
        )
        record_property("race", json.dumps(asdict(together)))

    return run


@pytest.fixture
def turns_red(shard: Any, record_property: Any) -> Any:
    """Without what was cut some order does not hold."""

    def run(scenario: Scenario, what: str) -> None:
        started = time.monotonic()
        with pytest.raises(Violation) as caught:
            explore(shard, scenario, limit=300)
        facts = {"scenario": scenario.name, "mode": shard.mode, "cuts": [what], "order": caught.value.order}
        record_property("control", json.dumps({**facts, "seconds": time.monotonic() - started}))

    return run


def dialect(arena: Any) -> str:
    return "sqlite" if arena.mode == "sqlite" else "postgres"


def migrating(wanted: Aim) -> Script:
    """Migration after migration, asking again where another is at work."""
    ran = []
    for _ in range(ROUNDS):
        got: Advance = yield apply_next(wanted)
        if got is None:
            break
        if isinstance(got, NotedMigration):
            ran.append(got.migration.version)
    return ran


def going_back(wanted: Aim) -> Script:
    reverted = []
    for _ in range(ROUNDS):
        got: Advance = yield revert_next(wanted, 0)
        if got is None:
            break
        if isinstance(got, NotedMigration):
            reverted.append(got.migration.version)
    return reverted


def actor(arena: Any, name: str, script: Any) -> Actor:
    return Actor(name, lambda _: script(aim(dialect(arena), name)))


def trail(story: Story) -> list[int]:
    """The migrations that left something, each as often as it did."""
    where = "sqlite_master" if story.arena.mode == "sqlite" else "pg_tables"
    name = "name" if story.arena.mode == "sqlite" else "tablename"
    if not story.run(asked(f"SELECT 1 FROM {where} WHERE {name} = 'trail'")):
        return []
    return sorted(int(str(row[0])) for row in story.run(asked("SELECT version FROM trail")))


def noted(story: Story) -> list[int]:
    return [
        int(str(row[0])) for row in story.run(asked("SELECT version FROM schema_ledger ORDER BY version"))
    ]


def each_once(story: Story) -> None:
    assert trail(story) == noted(story) == [1, 2, 3]
    ran = [version for name in ("one", "other") for version in story.results[name]]
    assert sorted(ran) == [1, 2, 3]


def meeting(arena: Any) -> Scenario:
    both = [actor(arena, "one", migrating), actor(arena, "other", migrating)]
    return Scenario("shard: migrate × migrate", nothing, both, each_once)


def test_two_migrators_run_each_step_once(shard: Any, explored: Any) -> None:
    explored(meeting(shard), share=3)


@pytest.mark.parametrize("shard", ["plain", "held"], indirect=True)
def test_they_meet_without_the_lock(shard: Any, turns_red: Any) -> None:
    """In a file the write lock is taken by BEGIN: there is no statement to cut."""
    lock = "pg_try_advisory_xact_lock(CAST(:lock AS bigint))"
    shard.queries = shard.queries.altered("try_ledger_lock", lock, "CAST(:lock AS bigint) IS NOT NULL")

    turns_red(meeting(shard), "try_ledger_lock: always got")


def test_a_version_read_before_the_lock_runs_steps_twice(shard: Any, turns_red: Any) -> None:
    """The control of the order of the two; the key of the ledger, which would refuse the second line, is cut too."""
    type_ = "INTEGER" if shard.mode == "sqlite" else "bigint"
    shard.queries = cut(shard.queries, "make_ledger", f"version {type_} PRIMARY KEY", f"version {type_}")
    both = [actor(shard, "one", reading_first), actor(shard, "other", reading_first)]

    scenario = Scenario("shard: migrate × migrate", with_a_ledger(shard), both, each_once)
    turns_red(scenario, "the version is read before the lock is taken")


def reading_first(wanted: Aim) -> Script:
    """Looks at the version, takes the lock then, and goes by what it saw."""
    ran: list[int] = []
    while True:
        seen = yield Operation("look", lambda: read(wanted.ledger, wanted.dialect), writes="")
        left = left_to_run(wanted.migrations, seen or [], out_of_order=False)
        if not left:
            return ran
        following = replace(wanted, migrations=[left[0]])
        yield Operation("blindly", lambda aimed=following: blindly(aimed))  # type: ignore[misc]
        ran.append(left[0].version)


def blindly(wanted: Aim) -> Steps[bool]:
    while not (yield from execute("try_ledger_lock", lock=wanted.ledger.lock))[0][0]:
        pass
    (following,) = wanted.migrations
    for piece in following.up.pieces:
        yield from asked(piece.text).steps()
    yield from execute(
        "note_migrated",
        version=following.version,
        name=following.name,
        checksum=following.checksum,
        actor=None,
    )
    return True


def with_a_ledger(arena: Any) -> Any:
    """The ledger and the trail are there; in the held mode the arena made the ledger."""

    def setup() -> Script:
        if arena.mode != "held":
            wanted = aim(dialect(arena), "setup")
            yield Operation("make", lambda: make(wanted.ledger, wanted.dialect, baseline=None))
        yield asked("CREATE TABLE IF NOT EXISTS trail (version integer)")
        yield asked("INSERT INTO trail VALUES (1)")
        yield asked(
            "INSERT INTO schema_ledger (version, name, checksum, state)"
            " VALUES (1, 'migration', 'checksum 1', 'applied')"
        )

    return setup


def test_a_migrator_that_dies_at_any_statement_beside_another(shard: Any, explored: Any) -> None:
    """It dies at that point of its first migration, and another process takes its place."""
    # A reply that nobody awaits is in tests/proof/crash.
    chosen = [point for point in points(STATEMENTS, alone=False) if point.when != "sent"]
    explored(*(dying_at(shard, point) for point in chosen), share=40)


def dying_at(arena: Any, point: Point) -> Scenario:
    def dying(wanted: Aim) -> Script:
        try:
            yield ending(apply_next(wanted), point, end)
        except Abandoned:
            pass
        return (yield from migrating(wanted))

    def none_twice(story: Story) -> None:
        assert trail(story) == noted(story) == [1, 2, 3]

    both = [actor(arena, "one", migrating), actor(arena, "dying", dying)]
    return Scenario("shard: migrate × migrate × crash", nothing, both, none_twice)


def end() -> NoReturn:
    raise Abandoned


def test_forward_and_back_leave_whole_steps(shard: Any, explored: Any) -> None:
    def whole(story: Story) -> None:
        assert trail(story) == noted(story)
        assert not any(isinstance(result, RevertRefused) for result in story.results.values())

    both = [actor(shard, "one", migrating), actor(shard, "back", going_back)]
    explored(Scenario("shard: migrate × down", with_a_ledger(shard), both, whole), share=6)


# --- outside of a transaction ------------------------------------------------------------------------

APART = [MIGRATIONS[0], migration(2, "SELECT 2", "SELECT 3", apart=True)]
TAKEN = OutsideTransaction(APART[1], 1, "started", resumed=False)


def late_and_fresh(arena: Any) -> Scenario:
    """A holder whose lease has passed finishes and renews while another takes the migration over and finishes it."""
    kind = dialect(arena)
    late, fresh = aim(kind, "late", APART), aim(kind, "fresh", APART)
    past = "0" if kind == "sqlite" else "clock_timestamp() - INTERVAL '1 second'"

    def setup() -> Script:
        yield from with_a_ledger(arena)()
        yield asked(
            "INSERT INTO schema_ledger (version, name, checksum, state, holder, lease_until)"
            f" VALUES (2, 'migration', 'checksum 2', 'started', 'late', {past})"
        )

    def finishing(_: Any) -> Script:
        renewed = yield renew(late, TAKEN, -1.0)  # still past, so that it can be taken over all the same
        return renewed, (yield finish(late, TAKEN))

    def taking(_: Any) -> Script:
        for _round in range(4):
            got = yield apply_next(fresh)
            if isinstance(got, OutsideTransaction):
                return got.attempt, (yield finish(fresh, got))
            if got is None:
                return None
        return None

    def one_holder(story: Story) -> None:
        _, finished = story.results["late"]
        taken = story.results["fresh"]
        assert finished == (taken is None), story.results
        assert taken is None or taken == (2, True), story.results
        assert noted(story) == [1, 2]

    return Scenario(
        "shard: late finish × takeover", setup, [Actor("late", finishing), Actor("fresh", taking)], one_holder
    )


def test_a_step_has_one_holder_who_may_note_it(shard: Any, explored: Any) -> None:
    explored(late_and_fresh(shard), share=3)


def test_without_the_fence_two_note_it(shard: Any, turns_red: Any) -> None:
    """Holder and attempt each tell the two apart, so both are cut."""
    attempt = "= :attempt" if shard.mode == "sqlite" else "= CAST(:attempt AS integer)"
    shard.queries = shard.queries.altered("finish_apart", "holder = :holder", ":holder IS NOT NULL").altered(
        "finish_apart", f"attempt {attempt}", f"0 <> {attempt.removeprefix('= ')}"
    )

    turns_red(late_and_fresh(shard), "finish_apart: holder and attempt")
