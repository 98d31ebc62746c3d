"""What systemd is told, by a real socket of each kind."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencerow.core.worker.vitals import Phase, Vitals
from fencerow.supervisor.notify import Notifier
from fencerow.supervisor.standing import Standing, of_several, of_worker

STARTING = of_worker(Vitals(Phase.STARTING))
RUNNING = of_worker(Vitals(Phase.RUNNING, holds_lease=True, running=1))
LEAVING = of_worker(Vitals(Phase.LEAVING, holds_lease=True, running=2))


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """What the service manager puts into $NOTIFY_SOCKET, and the socket that it reads."""
    if request.param == "path":
        name = str(tmp_path / "notify")
        address = name
    elif sys.platform == "linux":
        name = f"@fencerow-test-{os.getpid()}"
        address = f"\0{name[1:]}"
    else:
        pytest.skip("only Linux has abstract sockets")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(address)
        heard.settimeout(10)
        yield name, heard


def told(manager: tuple[str, socket.socket], *standings: Standing, **environ: str) -> list[list[str]]:
    name, heard = manager
    variables = {"NOTIFY_SOCKET": name, **environ}
    notifier = Notifier.from_environment(variables)
    assert notifier is not None
    assert variables == {}, "what we start must not speak in our name"
    messages = []
    for each in standings:
        notifier.tell(each)
        messages.append(heard.recv(4096).decode().split("\n"))
    return messages


def test_ready_and_stopping_are_said_once_and_a_drain_is_given_time(
    manager: tuple[str, socket.socket],
) -> None:
    starting, running, leaving, going_on = told(
        manager, STARTING, RUNNING, LEAVING, LEAVING, WATCHDOG_USEC="30000000", WATCHDOG_PID=str(os.getpid())
    )

    assert starting == ["WATCHDOG=1", "STATUS=starting, 0 jobs held"]
    assert running == ["READY=1", "WATCHDOG=1", "STATUS=running, 1 job held"]
    assert leaving == [
        "STOPPING=1",
        "WATCHDOG=1",
        "EXTEND_TIMEOUT_USEC=15000000",
        "STATUS=leaving, 2 jobs held",
    ]
    assert going_on == ["WATCHDOG=1", "EXTEND_TIMEOUT_USEC=15000000"]


def test_one_that_is_ill_no_longer_feeds_the_watchdog(manager: tuple[str, socket.socket]) -> None:
    ill = of_worker(Vitals(Phase.LEAVING, faults=("the keeper has made no turn for 99 s",)))

    (said,) = told(manager, ill, WATCHDOG_USEC="30000000")

    assert said == ["STOPPING=1", "STATUS=leaving, 0 jobs held; the keeper has made no turn for 99 s"]


def test_the_watchdog_of_another_process_is_not_ours(manager: tuple[str, socket.socket]) -> None:
    (said,) = told(manager, RUNNING, WATCHDOG_USEC="30000000", WATCHDOG_PID="1")

    assert said == ["READY=1", "STATUS=running, 1 job held"]


def test_a_short_watchdog_is_fed_often_enough() -> None:
    assert Notifier("/x", watchdog_s=0.9).beat_s == pytest.approx(0.3)
    assert Notifier("/x").beat_s == 1.0


@pytest.mark.parametrize("name", ["", "vsock:2:1234", "notify"])
def test_what_is_no_socket_of_this_machine_is_told_nothing(name: str) -> None:
    assert Notifier.from_environment({"NOTIFY_SOCKET": name}) is None


def test_a_manager_that_is_gone_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notifier = Notifier(str(tmp_path / "nobody"))

    for each in (STARTING, RUNNING, LEAVING):
        notifier.tell(each)

    assert len(caplog.records) == 1


def test_several_are_ready_when_all_of_them_are() -> None:
    well = Vitals(Phase.RUNNING, holds_lease=True, running=3)

    assert not of_several([well, None], 2, leaving=False).is_ready
    assert not of_several([well], 2, leaving=False).is_ready
    ready = of_several([well, well], 2, leaving=False)
    assert (ready.is_ready, ready.status) == (True, "2 of 2 processes ready, 6 jobs held")


def test_a_worker_without_its_database_is_alive_and_not_ready() -> None:
    waiting = of_worker(Vitals(Phase.RUNNING, holds_lease=False))

    assert (waiting.is_alive, waiting.is_ready) == (True, False)
    assert waiting.status == "waits for the database, 0 jobs held"
