"""Wake-ups between processes that share a SQLite file: heard at once, never waited for, and never relied on."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencerow.db.sqlite import SqliteEngine
from fencerow.db.wakeups import FileWakes
from fencerow.operators import looking
from tests.kit.leftovers import no_threads_left

Told = queue.Queue[str | None]

LISTENER = """
import sys, time
from pathlib import Path
from fencerow.db.wakeups import FileWakes
wakes = FileWakes(Path(sys.argv[1]))
wakes.listen(lambda message: print(message, flush=True))
print("listening", flush=True)
time.sleep(60)
"""
TELLER = """
import sys
from pathlib import Path
from fencerow.db.wakeups import FileWakes
FileWakes(Path(sys.argv[1])).wake(["mail", "§ ✓"])
"""


@pytest.fixture
def file(sqlite_path: Path) -> Path:
    sqlite_path.touch(mode=0o640)
    return sqlite_path


@pytest.fixture
def open_wakes() -> Iterator[Callable[[Path], FileWakes]]:
    """Wakes that are closed at the end, each as another process would have them."""
    made: list[FileWakes] = []

    def make(file: Path) -> FileWakes:
        made.append(FileWakes(file))
        return made[-1]

    with no_threads_left():
        yield make
        for each in made:
            each.close()


@pytest.fixture
def elsewhere(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that prints what it hears."""
    process = subprocess.Popen([sys.executable, "-c", LISTENER, str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "listening\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def folder(file: Path) -> Path:
    return Path(f"{file}-wakes")


def test_another_process_is_heard(file: Path, open_wakes: Callable[[Path], FileWakes]) -> None:
    told: Told = queue.Queue()
    open_wakes(file).listen(told.put)
    subprocess.run([sys.executable, "-c", TELLER, str(file)], check=True)
    assert {told.get(timeout=30), told.get(timeout=30)} == {"mail", "§ ✓"}


def test_another_process_hears(
    file: Path, elsewhere: subprocess.Popen[str], open_wakes: Callable[[Path], FileWakes]
) -> None:
    open_wakes(file).wake(["mail"])
    assert elsewhere.stdout is not None
    assert elsewhere.stdout.readline() == "mail\n"


def test_a_killed_listener_leaves_a_socket_that_the_next_wake_removes(
    file: Path, elsewhere: subprocess.Popen[str], open_wakes: Callable[[Path], FileWakes]
) -> None:
    elsewhere.send_signal(signal.SIGKILL)
    elsewhere.wait()
    assert len(list(folder(file).iterdir())) == 1
    told: Told = queue.Queue()
    open_wakes(file).listen(told.put)
    open_wakes(file).wake(["mail"])
    assert told.get(timeout=30) == "mail"
    assert len(list(folder(file).iterdir())) == 1


def test_nobody_waits_for_a_listener_that_does_not_listen(
    file: Path, open_wakes: Callable[[Path], FileWakes]
) -> None:
    told: Told = queue.Queue()
    open_wakes(file).listen(told.put)
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    deaf.bind(str(folder(file) / "1-deaf.sock"))
    teller = open_wakes(file)
    started = time.monotonic()
    for number in range(3_000):
        teller.wake([str(number)])
    assert time.monotonic() - started < 60
    teller.wake(["last"])
    heard = told.get(timeout=30)
    while heard is not None and heard != "last":  # None: look for yourself, some did not fit
        heard = told.get(timeout=30)
    deaf.close()


def test_what_does_not_fit_in_a_datagram_becomes_look_for_yourself(
    file: Path, open_wakes: Callable[[Path], FileWakes]
) -> None:
    told: Told = queue.Queue()
    open_wakes(file).listen(told.put)
    teller = open_wakes(file)
    teller.wake(["x" * 4_000_000])
    teller.flush(5)
    assert told.get(timeout=30) is None


def test_a_path_longer_than_a_sockets_name_may_be(
    file: Path, open_wakes: Callable[[Path], FileWakes]
) -> None:
    deep = file.parent / ("d" * 100) / ("e" * 100) / "jobs.db"
    deep.parent.mkdir(parents=True)
    told: Told = queue.Queue()
    open_wakes(deep).listen(told.put)
    open_wakes(deep).wake(["mail"])
    assert told.get(timeout=30) == "mail"


def test_who_stops_listening_leaves_no_socket(file: Path, open_wakes: Callable[[Path], FileWakes]) -> None:
    first, second = open_wakes(file), open_wakes(file)
    stop_first, stop_second = first.listen(lambda _: None), second.listen(lambda _: None)
    stop_first()
    stop_first()
    assert len(list(folder(file).iterdir())) == 1
    stop_second()
    assert list(folder(file).iterdir()) == []


def test_many_come_and_go(file: Path, open_wakes: Callable[[Path], FileWakes]) -> None:
    failed: list[BaseException] = []
    teller = open_wakes(file)

    def come_and_go(wakes: FileWakes) -> None:
        try:
            for _ in range(50):
                told: Told = queue.Queue()
                stop = wakes.listen(told.put)
                teller.wake(["mail"])
                assert told.get(timeout=30) in ("mail", None)
                stop()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=come_and_go, args=(open_wakes(file),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert list(folder(file).iterdir()) == []


def test_where_no_socket_can_be_polling_remains(file: Path, open_wakes: Callable[[Path], FileWakes]) -> None:
    folder(file).write_text("in the way")
    told: Told = queue.Queue()
    wakes = open_wakes(file)
    stop = wakes.listen(told.put)
    open_wakes(file).wake(["lost"])
    wakes.wake(["mine"])
    assert told.get(timeout=30) == "mine", "this process needs no socket"
    stop()


def test_who_may_write_the_file_may_wake(file: Path, open_wakes: Callable[[Path], FileWakes]) -> None:
    file.chmod(0o660)
    open_wakes(file).listen(lambda _: None)
    (bound,) = folder(file).iterdir()
    assert oct(folder(file).stat().st_mode & 0o777) == oct(0o770)
    assert oct(bound.stat().st_mode & 0o777) == oct(0o660)


def test_a_forked_child_leaves_its_parents_socket_alone(lite: SqliteEngine) -> None:
    told: Told = queue.Queue()
    stop = lite.listen(told.put)
    child = os.fork()
    if child == 0:
        try:
            lite.run(looking.list_jobs(limit=1))
            lite.wake(["from the child"])
            lite.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert told.get(timeout=30) == "from the child"
    assert len(list(folder(lite.path).iterdir())) == 1
    stop()
