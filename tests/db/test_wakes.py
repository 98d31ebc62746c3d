"""Wake-ups: hints that arrive soon, come back after a lost connection, and never make anybody wait."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace

import psycopg
import pytest

from fencerow.db import wakeups
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.wakeups import WakeupSender
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE, postgres_engine
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S


@pytest.fixture
def heard(engine: AnyEngine) -> Iterator[queue.Queue[str | None]]:
    """What a listener on the engine hears, once it listens."""
    told: queue.Queue[str | None] = queue.Queue()
    stop = engine.listen(told.put)
    if isinstance(engine, PostgresEngine):
        assert told.get(timeout=30) is None, "it says that it may have missed something before"
    yield told
    stop()


def until(told: queue.Queue[str | None], message: str | None) -> None:
    while told.get(timeout=30) != message:
        pass


def test_a_message_arrives(engine: AnyEngine, heard: queue.Queue[str | None]) -> None:
    engine.wake(["mail", "§ ✓"])
    assert {heard.get(timeout=30), heard.get(timeout=30)} == {"mail", "§ ✓"}


def test_another_process_hears_it_on_postgres(pg: PostgresEngine) -> None:
    told: queue.Queue[str | None] = queue.Queue()
    other = postgres_engine(pg.conninfo)
    stop = pg.listen(told.put)
    assert told.get(timeout=30) is None
    other.wake(["mail"])
    other.flush(PATIENCE_S)
    assert told.get(timeout=30) == "mail"
    stop()
    other.close()


def test_a_killed_listener_comes_back_and_says_that_it_missed_something(
    pg: PostgresEngine, server: PostgresServer
) -> None:
    told: queue.Queue[str | None] = queue.Queue()
    stop = pg.listen(told.put)
    assert told.get(timeout=30) is None
    with psycopg.connect(pg.conninfo) as connection:
        name = connection.info.dbname
    server.kill_backends(name, ROLE)
    assert told.get(timeout=30) is None
    pg.wake(["after"])
    until(told, "after")
    stop()


def test_a_listener_that_raises_hears_the_next(engine: AnyEngine) -> None:
    told: queue.Queue[str | None] = queue.Queue()

    def listener(message: str | None) -> None:
        told.put(message)
        raise RuntimeError("user code")

    stop = engine.listen(listener)
    if isinstance(engine, PostgresEngine):
        assert told.get(timeout=30) is None
    engine.wake(["one"])
    until(told, "one")
    engine.wake(["two"])
    until(told, "two")
    stop()


def test_a_stopped_listener_hears_nothing_more(lite: SqliteEngine) -> None:
    told: list[str | None] = []
    stop = lite.listen(told.append)
    lite.wake(["one"])
    stop()
    stop()
    lite.wake(["two"])
    assert told == ["one"]


def test_nobody_waits_for_a_server_that_is_away(server: PostgresServer) -> None:
    engine = PostgresEngine(
        f"postgresql://app@/x?host={server.directory}&port=1",
        postgres_engine("").queries,
        connect_timeout_s=0.2,
    )
    started = time.monotonic()
    for _ in range(2000):
        engine.wake(["mail"])
    engine.flush(0.05)
    assert time.monotonic() - started < 60, "two thousand times the wait for a connection is four hundred"
    engine.close()


def test_what_gathers_during_a_send_goes_together_and_once() -> None:
    batches: list[list[str]] = []
    sending, go_on = threading.Event(), threading.Event()

    def send(messages: list[str]) -> None:
        batches.append(messages)
        sending.set()
        go_on.wait(60)

    sender = WakeupSender(send)
    sender.post(["first"])
    assert sending.wait(60)
    for _ in range(50):
        sender.post(["a", "b"])
    sender.flush(0.01)
    assert batches == [["first"]]
    go_on.set()
    sender.flush(PATIENCE_S)
    assert batches == [["first"], ["a", "b"]]
    sender.close(PATIENCE_S)
    sender.post(["late"])
    assert len(batches) == 2


def test_a_stream_of_messages_is_sent_in_a_few_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[str]] = []
    sender, now = WakeupSender(batches.append), 1000.0

    def wait(left_s: float | None = None) -> None:
        """Ten messages come in each millisecond."""
        nonlocal now
        assert left_s is not None, "it waits for a first message, and there was one"
        for _ in range(max(1, round(left_s * 10_000))):
            now += 0.0001
            sender.post([str(next(numbers))])

    numbers = count()
    monkeypatch.setattr(wakeups, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(sender._service, "need", lambda: None)  # the turns are made here
    monkeypatch.setattr(sender._changed, "wait", wait)
    sender.post([str(next(numbers))])
    while now < 1000.2:
        assert sender._turn()

    sent = [int(each) for batch in batches for each in batch]
    assert sent == list(range(len(sent))) and len(sent) > 1_900
    # One at once, then rests of 1, 2, 4, 8, 10, 10, ... milliseconds; without them there would be hundreds.
    assert len(batches) <= 6 + 200 / 10


def test_a_flush_does_not_wait_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "REST_S_MIN", 60.0)
    monkeypatch.setattr(wakeups, "REST_S_MAX", 60.0)
    sent: list[list[str]] = []
    sender = WakeupSender(sent.append)
    sender.post(["first"])
    sender.flush(PATIENCE_S)
    sender.post(["second"])
    sender.flush(PATIENCE_S)
    assert sent == [["first"], ["second"]]
    sender.close(PATIENCE_S)


def test_a_failed_send_loses_a_hint_and_nothing_else() -> None:
    sent: list[list[str]] = []

    def send(messages: list[str]) -> None:
        sent.append(messages)
        if len(sent) == 1:
            raise OSError("broken")

    sender = WakeupSender(send)
    sender.post(["lost"])
    sender.flush(PATIENCE_S)
    sender.post(["kept"])
    sender.close(PATIENCE_S)
    assert sent == [["lost"], ["kept"]]
