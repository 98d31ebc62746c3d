"""Starts child processes from one thread that stays, each below a warden that sees to its end."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from fencerow.db.one_thread import OneThread
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
        self._thread = OneThread("fencerow-starter")

    async def start(self) -> Started:
        """Start a child; returns its warden and our ends of the connections.

        Raises:
            OSError, RuntimeError: the system has no room for another process, or for the thread that starts it.
        """
        return await asyncio.shield(self._thread.call(_started))

    def close(self) -> None:
        """All children have ended: end the thread."""
        self._thread.close(STOP_S)


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
