"""Wake-ups between the processes that share one SQLite file: a datagram socket for each that listens.

The sockets lie in a folder beside the file, because that is what the processes are known to share. A
hint is one message in one datagram; an empty one says "look for yourself". Sending never blocks: it is
a few microseconds for each listener, and what a full or large socket does not take is made up for by
one empty datagram from a background thread, or else by polling.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from fencerow.core.db.service import Service
from fencerow.core.db.wakes import LocalWakes, Sender

log = logging.getLogger("fencerow.wakes")

DATAGRAM_BYTES_MAX = 64 * 1024
JOIN_S = 3.0
AGAIN_S = (0.001, 0.005, 0.02)  # how a socket that is full is tried again
SUFFIX = ".sock"

Callback = Callable[[str | None], None]


class FileWakes:
    """Tells listeners in this process directly, and those in others through their sockets."""

    def __init__(self, path: Path) -> None:
        self._folder = Path(f"{path}-wakes")
        self._file = path
        self._local = LocalWakes()
        self._lock = threading.Lock()
        self._count = 0
        self._ear: Ear | None = None
        self._sender: Sender | None = None
        self._out: socket.socket | None = None

    def wake(self, messages: list[str]) -> None:
        """Tell everybody, without waiting for anybody. May be lost."""
        self._local.wake(messages)
        missed = False
        for name in self._others():
            missed |= not self._send(name, messages)
        if missed:
            self._make_up()

    def listen(self, callback: Callback) -> Callable[[], None]:
        """Call back with each message until the returned function is called; it may be called again."""
        forget = self._local.listen(callback)
        with self._lock:
            self._count += 1
            if self._ear is None:
                self._ear = open_ear(self._folder, self._file, self._local)
        once = threading.Lock()

        def stop() -> None:
            forget()
            if once.acquire(blocking=False):
                self._leave()

        return stop

    def flush(self, timeout_s: float) -> None:
        """Give what full sockets did not take another chance."""
        if self._sender is not None:
            self._sender.flush(timeout_s)

    def close(self) -> None:
        """Close the sockets; whoever still listens hears nothing more from other processes."""
        with self._lock:
            ear, self._ear = self._ear, None
            sender, self._sender = self._sender, None
        if ear is not None:
            ear.close()
        if sender is not None:
            sender.close(JOIN_S)
        with self._lock:  # after the sender, which opens one when it needs it
            out, self._out = self._out, None
        if out is not None:
            out.close()

    def _leave(self) -> None:
        with self._lock:
            self._count -= 1
            ear = None
            if self._count == 0:
                ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()

    def _others(self) -> list[str]:
        try:
            names = [each.name for each in self._folder.iterdir()]
        except OSError:
            return []  # nobody listens, in any process
        own = self._ear.name if self._ear is not None else None
        return [name for name in names if name.endswith(SUFFIX) and name != own]

    def _send(self, name: str, messages: list[str]) -> bool:
        """Whether the listener took all of them, or is gone."""
        try:
            with Short(self._folder) as short:
                for message in messages:
                    self._socket().sendto(message.encode(), short(name))
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:
                _remove(self._folder / name)  # its process died; a name is never used twice
                return True
            return error.errno not in (errno.EAGAIN, errno.ENOBUFS, errno.EMSGSIZE)
        return True

    def _make_up(self) -> None:
        with self._lock:
            if self._sender is None:
                self._sender = Sender(lambda _messages: self._look_all())
            sender = self._sender
        sender.post([""])

    def _look_all(self) -> None:
        """Tell everybody to look, waiting a little for those whose socket is full."""
        left = self._others()
        for pause_s in AGAIN_S:
            left = [name for name in left if not self._send(name, [""])]
            if not left:
                return
            time.sleep(pause_s)

    def _socket(self) -> socket.socket:
        with self._lock:
            if self._out is None:
                self._out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._out.setblocking(False)
            return self._out


class Ear:
    """One bound socket and the thread that hears it; whoever made the socket closes it if this cannot be made."""

    def __init__(self, folder: Path, name: str, bound: socket.socket, tell: LocalWakes) -> None:
        self.name = name
        self._path = folder / name
        self._bound = bound
        self._tell = tell
        with ExitStack() as opened:
            self._stop_here, self._stop_there = socket.socketpair()
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
        _remove(self._path)

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


def open_ear(folder: Path, file: Path, tell: LocalWakes) -> Ear | None:
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
            _remove(folder / name)
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


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        pass  # somebody else has removed it, or we may not
