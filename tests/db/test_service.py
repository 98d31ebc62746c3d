"""Threads of service outlive whatever their process was short of, and nobody believes in one that is gone."""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable

import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.db.service import Service
from fencerow.db.sockets import open_ear
from fencerow.db.wakeups import LocalWakes, WakeupSender
from fencerow.db.watchdog import Watchdog
from tests.db.test_sockets import file, folder  # noqa: F401 (a fixture)
from tests.kit.leftovers import no_threads_left
from tests.kit.shortage import no_descriptors, no_thread

WAIT_S = 60.0


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_turn_that_fails_is_followed_by_the_next() -> None:
    turns: list[str] = []
    over = threading.Event()

    def turn() -> bool:
        turns.append("turn")
        if len(turns) < 4:
            raise OSError(errno.EMFILE, "too many")
        return False

    with no_threads_left():
        service = Service("fencerow-t", turn, rest=lambda _pause_s: None, over=over.set)
        service.need()
        assert over.wait(WAIT_S)
        service.join()

    assert len(turns) == 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_is_gone_is_started_anew() -> None:
    turns: list[int] = []

    def turn() -> bool:
        turns.append(threading.get_ident())
        if len(turns) == 1:
            raise SystemExit  # whatever ends a thread: it ends without a word
        return False

    service = Service("fencerow-t", turn)
    service.need()
    service.join()
    service.need()
    until(lambda: len(turns) == 2)
    service.join()


def test_who_needs_it_while_it_leaves_gets_another() -> None:
    lock, leaves, go = threading.Lock(), threading.Event(), threading.Event()
    turns: list[int] = []

    def turn() -> bool:
        turns.append(threading.get_ident())
        with lock:
            service.leave()
        leaves.set()
        assert go.wait(WAIT_S)
        return False

    with no_threads_left():
        service = Service("fencerow-t", turn)
        with lock:
            service.need()
        assert leaves.wait(WAIT_S)
        with lock:
            service.need()
        until(lambda: len(turns) == 2)
        go.set()
        service.join()


def test_a_thread_that_the_system_refuses_is_asked_for_again() -> None:
    service = Service("fencerow-t", lambda: False)
    with no_thread("fencerow-t"), pytest.raises(RuntimeError, match="new thread"):
        service.need()
    service.need()
    service.join()


# --- those who serve -------------------------------------------------------------------------------------


def test_a_silent_server_is_given_up_without_a_descriptor_and_the_next_one_too() -> None:
    dog = Watchdog(0.2)
    with no_threads_left():
        for short in (True, False):
            here, there = socket.socketpair()
            here.settimeout(WAIT_S)
            with here, there, dog.watch(here.fileno(), None) as watched:
                watched.busy()
                if short:
                    with no_descriptors():
                        heard = here.recv(1)
                else:
                    heard = here.recv(1)
                assert heard == b"", "its end was shut"
        dog.close()


def test_who_has_less_time_than_the_others_wakes_the_dog() -> None:
    dog = Watchdog(10 * WAIT_S)
    here, there = socket.socketpair()
    here.settimeout(WAIT_S)
    with here, there, dog.watch(there.fileno(), None) as patient:
        patient.busy()
        until(lambda: dog._looks_at > time.monotonic())  # it sleeps, and for long
        with dog.watch(here.fileno(), None, limit_s=0.01) as watched:
            watched.busy()
            assert here.recv(1) == b"", "its end was shut"
    dog.close()


def test_one_that_cannot_be_given_up_keeps_no_other_waiting() -> None:
    def broken() -> None:
        raise RuntimeError("can't start new thread")

    dog = Watchdog(0.2)
    first, second = socket.socketpair(), socket.socketpair()
    second[0].settimeout(WAIT_S)
    with first[0], first[1], second[0], second[1]:
        with dog.watch(first[0].fileno(), broken) as bad, dog.watch(second[0].fileno(), None) as good:
            bad.busy()
            good.busy()
            assert second[0].recv(1) == b""
            first[0].settimeout(WAIT_S)
            assert first[0].recv(1) == b"", "its socket is shut, though nobody could be asked to cancel"
        dog.close()


def test_without_a_thread_nothing_is_watched_and_nothing_leaks() -> None:
    dog = Watchdog(0.2)
    here, there = socket.socketpair()
    with here, there:
        with no_thread("fencerow-watchdog"), pytest.raises(RuntimeError):
            dog.watch(here.fileno(), None).__enter__()
        with dog.watch(here.fileno(), None) as watched:
            watched.busy()
            here.settimeout(WAIT_S)
            assert here.recv(1) == b""
        dog.close()


def test_a_listener_without_a_selector_comes_back(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = [OSError(errno.EMFILE, "Too many open files") for _ in range(3)]

    known = selectors.DefaultSelector

    def selector() -> selectors.DefaultSelector:
        if short:
            raise short.pop()
        return known()

    heard: list[str | None] = []
    monkeypatch.setattr("fencerow.db.listener.selectors.DefaultSelector", selector)
    stop = pg.listen(heard.append)
    until(lambda: not short)
    monkeypatch.undo()
    while "mail" not in heard:
        pg.wake(["mail"])
        time.sleep(0.05)
    stop()


def test_a_wake_up_for_which_there_is_no_thread_harms_nobody() -> None:
    """Whoever sends it has committed already: an error would tell a lie."""
    sent: list[str] = []
    sender = WakeupSender(sent.extend)
    with no_thread("fencerow-wakes") as refused:
        sender.post(["first"])
    sender.post(["second"])
    sender.close(WAIT_S)

    assert refused
    assert sent == ["first", "second"]


@pytest.mark.parametrize("what", ["descriptors", "threads"])
def test_an_ear_that_cannot_be_leaves_no_socket(file, what: str) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    open_ear(folder(file), file, LocalWakes()).close()  # type: ignore[union-attr]
    with no_descriptors() if what == "descriptors" else no_thread("fencerow-listen"):
        ear = open_ear(folder(file), file, LocalWakes())

    assert ear is None
    assert list(folder(file).iterdir()) == []
