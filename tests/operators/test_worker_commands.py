"""Looking at workers and changing them from the command line, one of them a real process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.wanted import Blocked, Failing, SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli, command
from tests.kit.jobs import bury
from tests.kit.pace import PATIENCE_S

_clean, cli, shop, url = (
    command_line._clean,
    command_line.cli,
    command_line.shop,
    command_line.url,
)  # fixtures

AnyEngine = SqliteEngine | PostgresEngine


def registered(
    engine: AnyEngine, name: str = "w1", *, host: str = "h1", old: bool = False, pid: int = 7
) -> str:
    """A worker that takes orders but is nobody's process."""
    holder = new_id()
    stated = Stated(0, (SlotGroupNow(("mail",), 5, 2, 1, 3.5), SlotGroupNow(("docs", "other"), 2)))
    assert engine.run(
        store.register(
            holder=holder,
            name=name,
            host=host,
            pid=pid,
            info='{"queues":{"mail":5,"docs":2},"slots":7,"version":"1.2","names":["send"]}',
            lease_s=30.0,
            stated=None if old else msgspec.json.encode(stated).decode(),
        )
    )
    return holder


def test_what_fails_in_the_background_is_shown(cli: Cli, url: str, engine: AnyEngine) -> None:
    failing = (Failing("reaper of documents", 7, "WrongTable: there is no table"),)
    said = Stated(0, (SlotGroupNow(("mail",), 5),), failing=failing)
    engine.run(store.renew(holder=registered(engine), stated=msgspec.json.encode(said).decode()))

    assert "reaper of documents fails" in cli("workers").out
    assert "reaper of documents (7 times: WrongTable: there is no table)" in cli("workers", "show", "w1").out
    found = cli("doctor").out
    assert "reaper of documents fails in worker w1, 7 times in a row by now: WrongTable" in found


@pytest.mark.parametrize("over", [False, True], ids=["now", "a while ago"])
def test_what_blocks_an_event_loop_is_shown(cli: Cli, url: str, engine: AnyEngine, over: bool) -> None:
    blocked = Blocked(12.5, "j1", "resize", "shop/images.py:7 in resize", is_over=over)
    said = Stated(0, (SlotGroupNow(("mail",), 5),), blocked=blocked)
    engine.run(store.renew(holder=registered(engine), stated=msgspec.json.encode(said).decode()))

    assert ("blocked by resize" in cli("workers").out) is not over
    assert "12.5 s, by job j1 (resize) at shop/images.py:7" in cli("workers", "show", "w1").out
    assert "blocked for 12.5 s by job j1 (resize), at shop/images.py:7" in cli("doctor").out


def groups(engine: AnyEngine, holder: str) -> list[tuple[str, int]]:
    (worker,) = engine.run(store.list_workers(holder=holder))
    assert worker.wanted is not None
    return [("+".join(group.queues), group.slots) for group in worker.wanted.slot_groups]


def test_slots_and_queues_are_set_and_both_are_shown(cli: Cli, url: str, engine: AnyEngine) -> None:
    holder = registered(engine)

    done = cli(
        "workers", "set", "w1", "-Q", "mail:9", "-Q", "bulk:3", "--remove", "other", "--reason", "peak"
    )

    assert (done.code, done.err) == (0, "")
    assert done.out.strip() == f"w1 ({holder}): order 1: mail:9 docs:2 bulk:3"
    assert groups(engine, holder) == [("mail", 9), ("docs", 2), ("bulk", 3)]
    shown = cli("workers", "show", "w1")
    assert "version 1 by" in shown.out and ": peak" in shown.out
    assert "not carried out yet" in shown.out
    as_json = cli("workers", "show", holder, "--json").json
    assert as_json["worker"]["wanted"]["slot_groups"][2] == {"queues": ["bulk"], "slots": 3}
    assert as_json["worker"]["stated"]["slot_groups"][0]["running"] == 2
    assert "an order waits" in cli("workers").out


def test_the_same_again_changes_nothing(cli: Cli, url: str, engine: AnyEngine) -> None:
    registered(engine)
    cli("workers", "pause", "w1")
    again = cli("workers", "pause", "w1")
    assert again.code == 0
    assert "order 1: mail:5 docs+other:2, paused (it was so already)" in again.out
    assert "order 2" in cli("workers", "resume", "w1").out


def test_a_pattern_means_each_and_a_host_too(cli: Cli, url: str, engine: AnyEngine) -> None:
    first, second = registered(engine, "mail-1"), registered(engine, "mail-2", host="h2")
    registered(engine, "other")

    done = cli("workers", "pause", "mail-*", "--json")
    assert {each["holder"] for each in done.json["orders"]} == {first, second}
    by_host = cli("workers", "drain", "host:h2", "--within", "60", "--json")
    assert [each["holder"] for each in by_host.json["orders"]] == [second]
    assert by_host.json["orders"][0]["wanted"]["leave"] == {"within_s": 60.0}


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("set", "nobody", "--slots", "3"), "FR-601", 1),
        (("show", "nobody"), "FR-601", 1),
        (("set", "w1"), "FR-201", 2),
        (("set", "w1", "--slots", "3"), "FR-201", 2),  # each queue has its own
        (("set", "w1", "--remove", "mail", "--remove", "docs", "--remove", "other"), "FR-201", 2),
        (("set", "w1", "-Q", "new"), "FR-201", 2),  # shared with whom?
        (("set", "w1", "-Q", "mail:0"), "FR-201", 2),
        (("set", "w1", "-Q", "mail:x"), "FR-201", 2),
        (("set", "w1", "-Q", "mail:3", "--version", "4"), "FR-603", 1),
        (("drain", "w1", "--now", "--within", "3"), "FR-201", 2),
        (("pause", "old"), "FR-603", 1),
        (("show", "twin"), "FR-601", 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    cli: Cli, url: str, engine: AnyEngine, words: tuple[str, ...], code: str, exit_code: int
) -> None:
    registered(engine)
    registered(engine, "old", old=True)
    registered(engine, "twin")
    registered(engine, "twin")

    refused = cli("workers", *words)

    assert (refused.error, refused.code) == (code, exit_code), refused.err
    assert {each.wanted_version for each in engine.run(store.list_workers())} == {0}


def test_the_dead_take_no_orders_and_their_new_name_is_told(
    cli: Cli, url: str, engine: AnyEngine, clock: DatabaseClock
) -> None:
    former = registered(engine)
    clock.advance(31)
    assert bury(engine) == [former]
    gone = cli("workers", "pause", "w1")
    assert (gone.error, gone.code) == ("FR-602", 1)

    present = registered(engine)
    told = cli("workers", "pause", former)
    assert told.error == "FR-602"
    assert present in told.err
    assert cli("workers", "show", former).code == 0, "looking is free"


def test_a_worker_that_is_leaving_can_only_be_hurried(cli: Cli, url: str, engine: AnyEngine) -> None:
    holder = registered(engine)
    assert cli("workers", "drain", "w1").code == 0
    refused = cli("workers", "set", "w1", "-Q", "mail:1")
    assert (refused.error, refused.code) == ("FR-603", 1)
    assert cli("workers", "drain", holder, "--now").code == 0
    assert "end now" in cli("workers", "show", holder).out


def test_one_that_refuses_does_not_keep_the_others(cli: Cli, url: str, engine: AnyEngine) -> None:
    first = registered(engine, "w-1")
    registered(engine, "w-2", old=True)
    done = cli("workers", "pause", "w-*", "--json")
    assert done.code == 1
    assert [each["holder"] for each in done.json["orders"]] == [first]
    assert list(done.json["refused"].values()) == ["FR-603"]


@contextmanager
def process(shop: str, *words: str) -> Iterator[Any]:
    running = command("worker", "-A", shop, "--name", "postman", *words)
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate(timeout=PATIENCE_S)


def test_a_real_worker_is_changed_inspected_and_drained(
    cli: Cli, url: str, engine: AnyEngine, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_RENEW_S", "0.3")
    with process(shop, "-Q", "mail:1") as running:
        deadline = time.monotonic() + PATIENCE_S
        while cli("workers", "show", "postman").code:
            assert time.monotonic() < deadline, running.poll()
        sign = tmp_path / "started"
        job_id = cli("submit", "-A", shop, "slow", f"started={sign}").out.strip()

        added = cli("workers", "set", "postman", "-Q", "slow:2", "--wait", f"{PATIENCE_S:.0f}")
        assert added.code == 0, added.err
        while not sign.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        found = cli("workers", "show", "postman", "--json").json
        assert [(each["id"], each["name"], each["attempt"]) for each in found["jobs"]] == [
            (job_id, "slow", 1)
        ]
        assert found["worker"]["stated"]["memory_bytes"] > 1024 * 1024
        assert found["worker"]["pid"] == running.pid

        ended = cli("workers", "drain", "postman", "--within", "0.5", "--wait", f"{PATIENCE_S:.0f}")
        assert ended.code == 0, ended.err
        assert running.wait(PATIENCE_S) == 0
    job = engine.run(store.read([job_id]))[job_id]
    assert (job.state.value, job.failures) == ("queued", 0)
    assert cli("workers", "--json").json == []
    (last,) = json.loads(cli("workers", "--all", "--json").out)
    assert last["state"] == "retired"
