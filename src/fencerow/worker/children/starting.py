"""Starts child processes from one thread that stays, and has a warden end them should the worker die."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

BOOT = Path(__file__).with_name("_boot.py")
WARDEN = Path(__file__).with_name("_warden.py")
STOP_S = 2.0


class Starter:
    """A fresh interpreter for each child: never a fork of this process, whose threads may hold any lock.

    All are started by the same thread: a parent-death signal fires when the *thread* that started the child ends.
    """

    def __init__(self) -> None:
        self.warden = Warden()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """Start a child; returns it and our end of the connection to it.

        Raises:
            OSError: the system has no room for another process.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="fencerow-starter", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[subprocess.Popen[bytes], socket.socket]] = loop.create_future()
        self._work.put(lambda: _tell(loop, future, self._started))
        return await asyncio.shield(future)

    def close(self) -> None:
        """All children have ended: end the thread and the warden."""
        self._work.put(None)
        if self._thread is not None:
            self._thread.join(STOP_S)
        self.warden.close()

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def _started(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    [sys.executable, *_flags(), str(BOOT), str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # a group of its own, out of the terminal's reach
                )
            except BaseException:
                ours.close()
                raise
        self.warden.watch(process.pid)
        return process, ours


class Warden:
    """A small process that outlives this one for a moment, to end the groups of its children. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            try:
                process.stdin.close()
            except OSError:
                pass  # it is gone already
            process.wait()

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.poll() is None:
            try:
                self._write(line)
                return
            except OSError:
                pass  # somebody killed it
        if self._process is not None:
            self._process.wait()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WARDEN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._write("".join(f"+{group}\n" for group in self._groups))

    def _write(self, text: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()


def kill_group(group: int) -> None:
    """End every process of a group. Only for groups whose leader has not been waited for: no other has its number."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # all of it has ended; macOS says so by "not permitted"


def _flags() -> list[str]:
    """This interpreter's own ways: warnings, and how far it optimizes."""
    return [
        *(f"-W{option}" for option in sys.warnoptions),
        *(["-" + "O" * sys.flags.optimize] if sys.flags.optimize else []),
    ]


def _tell(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[tuple[subprocess.Popen[bytes], socket.socket]],
    start: Callable[[], tuple[subprocess.Popen[bytes], socket.socket]],
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
    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # the loop is closed; the child sees the end of its connection
