"""However many entities there are: the loop goes on after a part of them, and nothing kept is to be collected."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import pytest

import fencerow.schedules.definitions as definitions
import fencerow.schedules.following as following
import fencerow.schedules.listing as listing
import fencerow.schedules.reconciling as reconciling
import fencerow.schedules.running as running
from fencerow import App
from fencerow.db.run import Operation, Rows, Steps
from fencerow.schedules import Entity
from fencerow.schedules.definitions import RowKind
from fencerow.schedules.listing import Listing
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.schedules.conftest import wanted

T = TypeVar("T")
PART, ROWS = 3, 10


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "READ_ROWS", PART)
    monkeypatch.setattr(following, "READ_ROWS", PART)
    monkeypatch.setattr(definitions, "PUT_ROWS", PART)
    monkeypatch.setattr(listing, "PART_MEMBERS", PART)


class Played:
    """Runs operations, and counts how much each of their statements brings and takes, and how many rows are made
    something of between two: that holds the event loop."""

    def __init__(self, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._engine = engine
        self.most = 0
        self._made = 0
        self._make = definitions._standing
        monkeypatch.setattr(definitions, "_standing", self._counted)

    def _counted(self, row: Any) -> Any:
        self._made += 1
        self.most = max(self.most, self._made)
        return self._make(row)

    def __call__(self, asked: Operation[T]) -> T:
        def start() -> Steps[T]:
            steps = asked.steps()
            rows: Rows | None = None
            while True:
                try:
                    statement = next(steps) if rows is None else steps.send(rows)
                except StopIteration as done:
                    return done.value  # type: ignore[no-any-return]
                rows = yield statement
                self._made = 0
                self.most = max(self.most, len(rows), *map(length, statement.params.values()))

        return self._engine.run(msgspec.structs.replace(asked, start=start))


def length(param: object) -> int:
    """How many are sent in one parameter."""
    if isinstance(param, str) and param.startswith("["):
        param = msgspec.json.decode(param)
    return len(param) if isinstance(param, list) else 0


def listed(*names: str, seconds: int = 60) -> Listing:
    rows = [wanted("report", name, RowKind.ENTITY, spec={"interval_s": seconds}) for name in names]
    return Listing({row.entity: row for row in rows})


def test_no_statement_about_entities_brings_or_takes_more_than_a_part(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"e{number}" for number in range(ROWS)]
    head, play = wanted("report", kind=RowKind.HEAD), Played(engine, monkeypatch)

    def reconcile(*declared: Any) -> Any:
        return play(reconciling.reconcile(declared, owner="app", own=[], running=[], actor=None, version=1))

    def refresh(*names: str, seconds: int = 60, shrinks: bool = False) -> Any:
        given = listed(*names, seconds=seconds)
        return play(following.refresh("report", head.digest, given, owner="app", actor=None, shrinks=shrinks))

    reconcile(head)
    assert sorted(refresh(*reversed(names)).made) == names
    assert refresh(*names) == following.Refreshed()
    assert sorted(refresh(*names, seconds=30).changed) == names
    assert play(definitions.pause("report", None, actor="ann", reason=None)) == (ROWS + 1, ROWS + 1)
    assert play(definitions.resume("report", None)) == (ROWS + 1, ROWS + 1)
    assert refresh(names[0], seconds=30, shrinks=True).removed == names[1:]
    assert len(refresh(*names).made) == ROWS - 1
    assert reconcile().removed == ["report"]
    reconcile(head)
    assert sorted(refresh(*names).made) == names  # none was left
    reconcile(wanted("report"))
    assert play(definitions.pause("report", None, actor="ann", reason=None)) == (1, 1)

    assert play.most == PART


def test_a_run_and_a_removal_by_a_person_go_part_by_part(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(ROWS):
        engine.run(definitions.put_one(wanted("report", f"e{number}"), actor="ann"))
    play = Played(engine, monkeypatch)

    runs, jobs = play(running.run_now("report", None, actor="ann"))
    assert [each.job_id for each in runs] == [job.id for job in jobs]
    again, _ = play(running.run_now("report", None, actor="ann"))
    assert [each.job_id for each in again] == [None] * ROWS
    assert play(definitions.remove("report", None)) == (ROWS, True, False)
    assert play(definitions.remove("report", None)) == (0, False, False)
    assert play.most == PART


@pytest.fixture
def app(lite: AnyEngine) -> App:
    made = app_on(lite)

    @made.job(name="digest")
    async def digest(user: str) -> None: ...

    return made


def following_list(app: App, entities: Any) -> Any:
    app.schedule(app.jobs["digest"], interval_s=3600, entities=entities)
    return app.schedules._program.declarations.all["digest"]


async def test_a_list_is_read_part_by_part_in_the_loop_where_it_is_made(app: App) -> None:
    turn, at = 0, list[int]()

    async def turning() -> None:
        nonlocal turn
        while True:
            await asyncio.sleep(0)
            turn += 1

    def users() -> Iterator[str]:
        for number in range(ROWS):
            at.append(turn)
            yield f"u{number % 7}"

    async def lists() -> Iterator[str]:
        return users()

    task = asyncio.create_task(turning())
    found = await following_list(app, lists).listed()
    task.cancel()

    assert (list(found.rows), list(found.invalid)) == (["u3", "u4", "u5", "u6"], ["u0", "u1", "u2"])
    assert max(at.count(each) for each in at) == PART


@pytest.mark.parametrize("kind", [list, dict.fromkeys])
async def test_a_list_that_its_owner_changes_meanwhile_is_read_as_it_was(app: App, kind: Any) -> None:
    """Else a member would be passed over, and its row removed, or the whole list be refused."""
    live = kind(f"u{number}" for number in range(ROWS))

    async def lists() -> Any:
        asyncio.get_running_loop().call_soon(live.pop, 0 if kind is list else "u0")
        return live

    assert len((await following_list(app, lists).listed()).rows) == ROWS


async def test_what_a_function_lists_as_it_goes_is_read_in_its_thread_and_not_kept(app: App) -> None:
    threads: set[threading.Thread] = set()

    def users() -> Iterator[Entity]:
        for number in range(ROWS):
            threads.add(threading.current_thread())
            yield Entity(f"u{number}", when={"interval_s": 60 + number})

    found = await following_list(app, users).listed()

    assert len(found.rows) == ROWS
    assert threads.isdisjoint({threading.main_thread()})
    assert not any(gc.is_tracked(row) for row in found.rows.values())
    found.let_go()
    assert found.rows == {}


async def test_an_endless_list_is_read_no_further_than_a_list_may_be_long(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ENTITIES_MAX", ROWS)
    seen = 0

    def users() -> Iterator[str]:
        nonlocal seen
        while True:
            seen += 1
            yield f"u{seen}"

    with pytest.raises(Exception, match="too much"):
        await following_list(app, users).listed()

    assert seen <= ROWS + PART
