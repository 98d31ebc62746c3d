"""For each rule of the guide the order of steps that is named there; it returns how that ended."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pytest
from psycopg_pool import ConnectionPool

from fencerow import State
from fencerow.errors import MutexLost, StaleToken
from fencerow.events import publish
from tests.kit.pace import PATIENCE_S
from tests.whole.guide.scene import Scene


def run_again(scene: Scene) -> str:
    scene.sql("CREATE TABLE orders (id TEXT PRIMARY KEY, number TEXT)")
    scene.load()
    scene.loses_answer("after send")
    scene["take_order"].submit("A-17")
    scene.work()
    return f"orders: {scene.one('SELECT count(*) FROM orders')}"


def counted_again(scene: Scene) -> str:
    scene.sql("CREATE TABLE stock (count INTEGER)")
    scene.sql("INSERT INTO stock VALUES (10)")
    scene.load()
    scene.loses_answer("after send")
    scene["ship"].submit("A-17")
    scene.work()
    return f"in stock: {scene.one('SELECT count FROM stock')}"


def paid_again(scene: Scene) -> str:
    scene.load()
    scene.loses_answer("after send")
    scene["pay"].submit("4711")
    scene.work()
    assert scene.outside.calls == 2
    return f"payments: {len(scene.outside.done)}"


def same_wish_comes_again(scene: Scene) -> str:
    scene.sql("CREATE TABLE welcomed (customer TEXT)")
    scene.load()
    scene.at("after send ada", lambda: scene.meanwhile(lambda: scene["welcome"]("ada")))
    scene["welcome"]("ada")
    return f"letters: {scene.outside.calls}"


def older_version_ends_last(scene: Scene) -> str:
    scene.sql("CREATE TABLE chunks (source TEXT, version INTEGER, vector TEXT)")
    scene.sql("INSERT INTO chunks VALUES ('faq', 0, '')")
    scene.load()
    seen: list[int] = []
    scene.always("after commit", lambda: seen.append(scene.one("SELECT count(*) FROM chunks")))
    scene.at("after send model", lambda: scene.meanwhile(lambda: scene["index"](2, "new")))
    scene["index"](1, "old")
    seen.append(scene.one("SELECT count(*) FROM chunks"))
    return f"least rows seen: {min(seen)}, version in the end: {scene.one('SELECT version FROM chunks')}"


def event_is_delivered_again(scene: Scene) -> str:
    scene.sql("CREATE TABLE points (count INTEGER)")
    scene.sql("INSERT INTO points VALUES (0)")
    scene.load()
    scene.loses_answer("after send")
    publish(scene.app, "order.paid", {"order": 17})
    scene.consume("loyalty")
    assert scene.outside.calls == 2
    return f"points: {scene.one('SELECT count FROM points')}"


def same_words_under_another_id(scene: Scene) -> str:
    scene.sql("CREATE TABLE seen (sender TEXT, text TEXT)")
    scene.load()
    second = threading.Thread(target=lambda: scene["receive"]("ev-2", "ada", "hello"))
    if scene.kind == "wrong":
        scene.at("after commit", lambda: scene.meanwhile(lambda: scene["receive"]("ev-2", "ada", "hello")))
    else:  # it holds the file's write lock from its first statement on, so the other waits for its end
        scene.at("began", second.start)
    scene["receive"]("ev-1", "ada", "hello")
    if scene.kind == "right":
        second.join(PATIENCE_S)
    return f"jobs: {len(scene.app.client.list_jobs())}"


def other_runs_meanwhile(scene: Scene) -> str:
    scene.sql(
        "CREATE TABLE documents (id TEXT PRIMARY KEY, status TEXT DEFAULT 'pending', "
        "claims INTEGER DEFAULT 0, claimed_at TEXT)"
    )
    scene.sql("INSERT INTO documents (id) VALUES ('a')")
    scene.load()
    scene.at("after send model", lambda: scene.meanwhile(lambda: scene["process"]("a")))
    scene["process"]("a")
    assert scene.one("SELECT status FROM documents") == "ready"
    return f"calls: {scene.outside.calls}"


def second_of_three_is_lost(scene: Scene) -> str:
    scene.sql(
        "CREATE TABLE letters (id TEXT PRIMARY KEY, state TEXT DEFAULT 'pending', "
        "claims INTEGER DEFAULT 0, claimed_at TEXT)"
    )
    scene.load()
    scene.loses_answer("after send b")
    handle = scene["send_all"].submit(["a", "b", "c"])
    scene.work()
    assert handle.refresh().state is State.SUCCEEDED

    scene.dies("before send e")
    scene.killed(lambda: scene["send_all"](["d", "e", "f"]))
    handle = scene["send_all"].submit(["d", "e", "f"])
    scene.work()
    scene.pass_time(120)  # the lease of the one who died is over
    scene.work()
    assert handle.refresh().state is State.SUCCEEDED
    return f"calls: {scene.outside.calls}, letters: {len(scene.outside.done)}"


def another_looks_after_each_page(scene: Scene) -> str:
    scene.sql(
        "CREATE TABLE documents (id TEXT PRIMARY KEY, status TEXT DEFAULT 'pending', "
        "claims INTEGER DEFAULT 0, claimed_at TEXT)"
    )
    scene.sql("INSERT INTO documents (id) VALUES ('a')")
    scene.load()

    def page_is_read() -> None:
        scene.pass_time(40)
        if threading.current_thread() is threading.main_thread():
            scene.meanwhile(lambda: scene["read"]("a"))

    scene.always("after send model", page_is_read)
    scene["read"]("a")
    assert scene.one("SELECT status FROM documents") == "ready"
    return f"workers on it: {scene.one('SELECT claims FROM documents')}"


def first_sleeps_in_the_middle(scene: Scene) -> str:
    scene.sql("CREATE TABLE report (text TEXT)")
    scene.sql("INSERT INTO report VALUES ('')")
    _first_sleeps(scene)
    text: str = scene.one("SELECT text FROM report")
    return text


def first_sleeps_before_a_write_outside(scene: Scene) -> str:
    _first_sleeps(scene)
    return scene.outside.kept["report"]


def _first_sleeps(scene: Scene) -> None:
    scene.load()

    def another_takes_over() -> None:
        scene.pass_time(3600)
        scene.meanwhile(lambda: scene["report"]("the second"))

    scene.at("after send model", another_takes_over)
    with pytest.raises((MutexLost, StaleToken)):
        scene["report"]("the first")


def other_begins_through_the_same_pool(scene: Scene) -> str:
    with ConnectionPool(scene.conninfo, min_size=1, max_size=1) as pool:
        scene.names["pool"] = pool
        scene.load()
        scene.at("after send provider", lambda: scene.meanwhile(scene["nightly"]))
        scene["nightly"]()
    return f"at work: {scene.outside.calls}"


def two_migrate(scene: Scene) -> str:
    scene.sql("CREATE TABLE prices (amount INTEGER)")
    scene.sql("INSERT INTO prices VALUES (1)")
    scene.sql("CREATE TABLE schema_version (version INTEGER)")
    scene.sql("INSERT INTO schema_version VALUES (0)")
    scene.load()
    if scene.kind == "wrong":
        scene.at("after commit", lambda: scene.meanwhile(scene["migrate"]))
        scene["migrate"]()
    else:  # it takes the lock on connections of its own, so they may begin in any order
        with ThreadPoolExecutor(2) as threads:
            for each in [threads.submit(scene["migrate"]) for _ in range(2)]:
                each.result(30)
    return f"cents: {scene.one('SELECT amount FROM prices')}"


def another_writes_meanwhile(scene: Scene) -> str:
    scene.sql("CREATE TABLE pictures (name TEXT PRIMARY KEY, text TEXT)")
    scene.load()
    ends: list[str] = []

    def write() -> None:
        try:
            scene.sql("INSERT INTO pictures (name) VALUES ('another')", timeout_s=0.3)
            ends.append("the other one wrote")
        except sqlite3.OperationalError as error:
            ends.append("the other one was locked out" if "locked" in str(error) else str(error))

    scene.at("after send", write)
    scene["describe"].submit("sunset")
    scene.work()
    return ends[0]


def service_fails_at_the_second(scene: Scene) -> str:
    scene.sql("CREATE TABLE chunks (text TEXT, vector TEXT)")
    scene.load()
    scene.loses_answer("after send two")
    handle = scene["index"].submit(["one", "two"])
    scene.work()
    job = handle.refresh()
    assert job.state is State.SUCCEEDED
    how = "failed once and then succeeded" if job.failures else "succeeded"
    return f"the job {how}, {scene.one('SELECT count(*) FROM chunks')} of 2 chunks"


def dies_after_the_commit(scene: Scene) -> str:
    scene.sql("CREATE TABLE orders (id TEXT PRIMARY KEY, number TEXT)")
    scene.load()
    scene.dies("after commit")
    scene.killed(lambda: scene["take_order"]("A-17"))
    orders, jobs = scene.one("SELECT count(*) FROM orders"), len(scene.app.client.list_jobs())
    return f"orders: {orders}, jobs: {jobs}"


def first_attempt_ends_last(scene: Scene) -> str:
    scene.sql("CREATE TABLE results (text TEXT)")
    scene.sql("INSERT INTO results VALUES ('')")
    scene.load()
    late, second_ended = Latecomer(), threading.Event()

    def hear_no_end() -> None:
        scene.sql(
            "UPDATE fencerow_jobs SET timeout_s = 3600"
        )  # the second attempt's: a slow machine gives it up too
        late.sleeps_until(second_ended)

    scene.at("after send model", hear_no_end)
    handle = scene["transcribe"].submit()
    scene.at_end_of(handle, second_ended.set)
    scene.work()
    late.join()
    job = handle.refresh()
    assert (job.state, job.attempt) == (State.SUCCEEDED, 2)
    return f"the result of {scene.one('SELECT text FROM results')}"


class Latecomer:
    """A thread that is past help: it hears no end of its attempt and wakes up when all is over."""

    def sleeps_until(self, event: threading.Event) -> None:
        self._thread = threading.current_thread()
        while not event.is_set():
            with suppress(BaseException):  # what asks it to end is not heard
                event.wait(0.01)

    def join(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def clock_is_an_hour_fast(scene: Scene) -> str:
    scene.sql("CREATE TABLE offers (until_s INTEGER, state TEXT DEFAULT 'open')")
    scene.sql("INSERT INTO offers (until_s) VALUES (CAST(strftime('%s', 'now') AS INTEGER) + 1800)")
    scene.load()
    scene.names["time"] = SimpleNamespace(time=lambda: time.time() + 3600)
    scene["end_offers"]()
    count = scene.one("SELECT count(*) FROM offers WHERE state = 'over'")
    return f"offers ended an hour early: {count}"


def dies_after_the_first_line(scene: Scene) -> str:
    scene.load()
    scene.dies("after send progress")
    scene.killed(lambda: scene["export"](["a", "b"]))
    scene["export"](["a", "b"])
    return f"lines: {len((scene.folder / 'export.csv').read_text().splitlines())}"


ORDERS: dict[str, Callable[[Scene], str]] = {
    "A second run ends where the first did": run_again,
    "Effect and success are one commit": counted_again,
    "A call outside carries a key that is the same in every run": paid_again,
    "Reserve before the effect": same_wish_comes_again,
    "One guarded UPDATE, and a look at what it returned": other_runs_meanwhile,
    "A batch keeps a ledger of its items": second_of_three_is_lost,
    "A source is replaced as a whole, and the newest version wins": older_version_ends_last,
    "What belongs together is committed together": dies_after_the_commit,
    "An event may be delivered twice": event_is_delivered_again,
    "A duplicate may come under another name": same_words_under_another_id,
    "A lease is not a time limit": another_looks_after_each_page,
    "A lock is no fence": first_sleeps_in_the_middle,
    "A write outside carries a token that never goes back": first_sleeps_before_a_write_outside,
    "No lock belongs to a connection": other_begins_through_the_same_pool,
    "A lock on the schema is taken before its version is read": two_migrate,
    "No transaction stays open while somebody outside is asked": another_writes_meanwhile,
    "Fail loudly": service_fails_at_the_second,
    "A late result is not written": first_attempt_ends_last,
    "Time that decides comes from the database": clock_is_an_hour_fast,
    "A file is written beside its place and moved there": dies_after_the_first_line,
}

ON_POSTGRES = {"No lock belongs to a connection"}
