"""Starts child processes from one thread that stays, each below a warden that sees to its end."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from fencerow.db.service import Service, soon
from fencerow.db.socket_pairs import socket_pair

BOOT = Path(__file__).with_name("_boot.py")
STOP_S = 2.0


class Started(NamedTuple):
    """A warden, and our ends of what its child and it itself are told by."""

    warden: subprocess.Popen[bytes]
    connection: socket.socket
    control: socket.socket

    def give_up(self) -> None:
        """End it before it was told anything: a warden whose worker is gone ends what it has started."""
        self.connection.close()
        self.control.close()


class Starter:
    """A fresh interpreter for each child: never a fork of this process, whose threads may hold any lock.

    All are started by the same thread: a parent-death signal fires when the *thread* that started the child ends.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._service = Service("fencerow-starter", self._turn)

    async def start(self) -> Started:
        """Start a child; returns its warden and our ends of the connections.

        Raises:
            OSError, RuntimeError: the system has no room for another process, or for the thread that starts it.
        """
        self._service.need()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Started] = loop.create_future()
        self._work.put(lambda: _tell(loop, future, _started))
        return await asyncio.shield(future)

    def close(self) -> None:
        """All children have ended: end the thread."""
        self._work.put(None)
        self._service.join(STOP_S)

    def _turn(self) -> bool:
        work = self._work.get()
        if work is None:
            return False
        work()
        return True


def _started() -> Started:
    connection, childs = socket_pair()
    try:
        control, wardens = socket_pair()
    except BaseException:
        connection.close()
        childs.close()
        raise
    with childs, wardens:
        numbers = childs.fileno(), wardens.fileno()
        try:
            process = subprocess.Popen(
                [sys.executable, *_flags(), str(BOOT), *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                pass_fds=numbers,
                start_new_session=True,  # out of the terminal's reach
            )
        except BaseException:
            connection.close()
            control.close()
            raise
    return Started(process, connection, control)


def _flags() -> list[str]:
    """This interpreter's own ways: warnings, and how far it optimizes."""
    return [
        *(f"-W{option}" for option in sys.warnoptions),
        *(["-" + "O" * sys.flags.optimize] if sys.flags.optimize else []),
    ]


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Started], start: Callable[[], Started]
) -> None:
    def settle() -> None:
        if error is not None:
            future.set_exception(error)
        elif started is not None:
            future.set_result(started)

    started, error = None, None
    try:
        started = start()
    except Exception as raised:
        error = raised
    soon(loop, settle)  # nobody to tell: then the child sees the end of its connection
