"""The datagram sockets by which the processes of one SQLite file hear each other.

They lie in a folder beside the file, because that is what the processes are known to have in common.
"""

from __future__ import annotations

import logging
import os
import secrets
import selectors
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from fencerow.db.service import Service
from fencerow.db.socket_pairs import socket_pair

log = logging.getLogger("fencerow.wakes")

DATAGRAM_BYTES_MAX = 64 * 1024
JOIN_S = 3.0
SUFFIX = ".sock"


class Listeners(Protocol):
    """Who is told what an ear hears: those of this process."""

    def wake(self, messages: list[str]) -> None: ...

    def missed(self) -> None: ...


class Ear:
    """One bound socket and the thread that hears it; whoever made the socket closes it if this cannot be made."""

    def __init__(self, folder: Path, name: str, bound: socket.socket, tell: Listeners) -> None:
        self.name = name
        self._path = folder / name
        self._bound = bound
        self._tell = tell
        with ExitStack() as opened:
            self._stop_here, self._stop_there = socket_pair()
            opened.callback(self._stop_there.close)
            opened.callback(self._stop_here.close)
            # Here and not in the thread: without a descriptor there is no ear, and everybody knows.
            self._selector = opened.enter_context(selectors.DefaultSelector())
            self._selector.register(self._bound, selectors.EVENT_READ)
            self._selector.register(self._stop_here, selectors.EVENT_READ)
            self._service = Service("fencerow-listen", self._turn, over=self._over)
            self._service.need()
            opened.pop_all()

    def close(self) -> None:
        """Stop hearing and remove the socket. The folder stays: removing it would race with who comes."""
        self._stop_there.close()
        self._service.join(JOIN_S)
        remove(self._path)

    def _turn(self) -> bool:
        ready = [key.fileobj for key, _ in self._selector.select()]
        if self._stop_here in ready:
            return False
        self._hear()
        return True

    def _over(self) -> None:
        self._selector.close()
        self._bound.close()
        self._stop_here.close()

    def _hear(self) -> None:
        """Take everything that has come, so that a socket is seldom full."""
        heard: dict[str, None] = {}
        while (data := self._received()) is not None:
            heard[data.decode(errors="replace")] = None
        if "" in heard:
            self._tell.missed()
        self._tell.wake([message for message in heard if message])

    def _received(self) -> bytes | None:
        try:
            return self._bound.recv(DATAGRAM_BYTES_MAX)
        except BlockingIOError:
            return None


# Linux has it; elsewhere a folder with a long path has no wake-ups between processes, and polling remains.
DESCRIPTORS = Path("/proc/self/fd")


class Short:
    """Names a socket in a folder whose path may be longer than the hundred bytes that a socket's name may have."""

    def __init__(self, folder: Path, descriptors: Path = DESCRIPTORS) -> None:
        self._folder = folder
        self._descriptors = descriptors
        self._fd: int | None = None

    def __enter__(self) -> Callable[[str], str]:
        if len(os.fsencode(self._folder)) < 60 or not self._descriptors.is_dir():
            return lambda name: str(self._folder / name)
        self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return lambda name: f"{self._descriptors}/{self._fd}/{name}"

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)


def open_ear(folder: Path, file: Path, tell: Listeners) -> Ear | None:
    """A socket of our own in the folder; None where that cannot be, and polling remains."""
    name = f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
    bound = None
    try:
        bound = _bound(folder, file, name)
        return Ear(folder, name, bound, tell)
    except (OSError, RuntimeError) as error:  # the system refuses another thread by a RuntimeError
        log.info("no wake-ups from other processes (%s); polling goes on", error)
        if bound is not None:
            bound.close()
            remove(folder / name)
        return None


def _bound(folder: Path, file: Path, name: str) -> socket.socket:
    """Whoever may write to the file may wake us."""
    try:
        mode = file.stat().st_mode & 0o666
    except FileNotFoundError:
        mode = 0o600
    folder.mkdir(exist_ok=True)
    if os.geteuid() == folder.stat().st_uid:
        folder.chmod(mode | (mode & 0o444) >> 2)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        with Short(folder) as short:
            made.bind(short(name))
            Path(short(name)).chmod(mode)
    except BaseException:
        made.close()
        raise
    return made


def remove(path: Path) -> None:
    """Remove a socket that nobody listens on."""
    try:
        path.unlink()
    except OSError:
        pass  # somebody else has removed it, or we may not
