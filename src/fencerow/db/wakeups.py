"""Wake-ups: hints that work is there or has ended. They may be lost; polling lies beneath.

A caller never waits for one: `wake` returns at once, and one background thread sends what has
gathered. An idle queue hears at once; while messages keep coming they go together, every few milliseconds.

Between the processes of one SQLite file a hint is one message in one datagram; an empty one says "look for
yourself". Sending never blocks: it is a few microseconds for each listener, and what a full or large socket does not
take is made up for by one empty datagram from a background thread, or else by polling.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fencerow.db.service import Service
from fencerow.db.sockets import SUFFIX, Ear, Short, open_ear, remove

log = logging.getLogger("fencerow.wakes")

# Between two sends. A stream of submits would otherwise pay for a NOTIFY each, in a thread that contends with theirs.
REST_S_MIN = 0.001
REST_S_MAX = 0.010
LONGER_S = 0.001  # the thread rests, so that in a stream the next submit takes along what has gathered
JOIN_S = 3.0
AGAIN_S = (0.001, 0.005, 0.02)  # how a socket that is full is tried again

Callback = Callable[[str | None], None]


class LocalWakes:
    """Listeners inside this process."""

    def __init__(self) -> None:
        self._listeners: list[Callback] = []
        self._lock = threading.Lock()

    def wake(self, messages: list[str]) -> None:
        for callback in tuple(self._listeners):
            for message in messages:
                _tell(callback, message)

    def missed(self) -> None:
        """Say that some may have been missed: everybody looks for himself."""
        for callback in tuple(self._listeners):
            _tell(callback, None)

    def listen(self, callback: Callback) -> Callable[[], None]:
        with self._lock:
            self._listeners = [*self._listeners, callback]
        return lambda: self._forget(callback)

    def _forget(self, callback: Callback) -> None:
        with self._lock:
            self._listeners = [known for known in self._listeners if known is not callback]


class WakeupSender:
    """Sends messages from one background thread, what gathers meanwhile together, each message once.

    After each send it rests: a moment, and longer while something has always gathered by its end. When the
    rest is over, whoever has a message on its way to the server anyway takes all of them along.
    """

    def __init__(self, send: Callable[[list[str]], None]) -> None:
        self._send = send
        self._waiting: dict[str, None] = {}
        self._changed = threading.Condition()
        self._service = Service("fencerow-wakes", self._turn)
        self._busy = False
        self._closed = False
        self._resting = False
        self._is_stream = False  # more than one was posted since the last send
        self._hurried = 0  # how many wait in `flush`
        self._rest_s = REST_S_MIN
        self._rests_until = 0.0

    def taken_along(self, messages: list[str]) -> list[str] | None:
        """These and all that waits, if it is time to send: for whoever has a message on its way to the server anyway.
        He posts again what could not be sent. None: they are to be posted, and gather."""
        now = time.monotonic()
        if now < self._rests_until:  # nearly always in a stream; it spares the lock
            return None
        with self._changed:
            if self._busy or self._closed or self._hurried or now < self._rests_until:
                return None
            taken = list(dict.fromkeys((*self._waiting, *messages)))
            self._rest_s = self._next_rest_s()
            self._rests_until = now + self._rest_s
            self._waiting, self._is_stream = {}, False
            return taken

    def post(self, messages: list[str]) -> None:
        if self._resting and self._waiting.keys() >= set(messages):
            self._is_stream = True
            return  # whoever takes them from there sends them later than now
        with self._changed:
            if self._closed:
                return
            self._is_stream = bool(self._waiting)
            self._waiting.update(dict.fromkeys(messages))
            try:
                self._service.need()
            except (
                RuntimeError
            ) as error:  # no thread to be had, and this is a hint: what it tells is committed
                log.debug("a wake-up waits for the next one: %s", error)
                return
            if not self._resting:
                self._changed.notify_all()

    def flush(self, timeout_s: float) -> None:
        """Wait until all that was posted is sent, at most this long: a wake-up is only a hint."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._hurried += 1
            self._changed.notify_all()
            while (self._waiting or self._busy) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._hurried -= 1

    def close(self, timeout_s: float) -> None:
        self.flush(timeout_s)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._service.join(timeout_s)

    def _turn(self) -> bool:
        batch = self._next()
        if batch is None:
            return False
        try:
            self._send(batch)
        except Exception:
            log.debug("a wake-up could not be sent; polling will find the work", exc_info=True)
        finally:
            with self._changed:
                self._busy = False
                self._rests_until = time.monotonic() + self._rest_s
                self._changed.notify_all()
        return True

    def _next(self) -> list[str] | None:
        with self._changed:
            self._rest()
            while not self._waiting and not self._closed:
                self._changed.wait()
                self._rest()
            if not self._waiting:
                return None
            batch, self._waiting, self._is_stream = list(self._waiting), {}, False
            self._busy = True
            return batch

    def _rest(self) -> None:
        """Let messages gather, unless somebody flushes. A stream is given a moment more, to take them along."""
        if time.monotonic() >= self._rests_until:
            return
        self._resting = True
        while not self._closed and not self._hurried and (left := self._left_s()) > 0:
            self._changed.wait(left)
        self._resting = False
        self._rest_s = self._next_rest_s()

    def _left_s(self) -> float:
        return self._rests_until + (LONGER_S if self._is_stream else 0.0) - time.monotonic()

    def _next_rest_s(self) -> float:
        return min(2 * self._rest_s, REST_S_MAX) if self._waiting else REST_S_MIN


class FileWakes:
    """Tells listeners in this process directly, and those in others through their sockets."""

    def __init__(self, path: Path) -> None:
        self._folder = Path(f"{path}-wakes")
        self._file = path
        self._local = LocalWakes()
        self._lock = threading.Lock()
        self._count = 0
        self._ear: Ear | None = None
        self._sender: WakeupSender | None = None
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
            names = os.listdir(self._folder)  # noqa: PTH208 (each wake-up looks here; a Path for each costs more than that)
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
                remove(self._folder / name)  # its process died; a name is never used twice
                return True
            return error.errno not in (errno.EAGAIN, errno.ENOBUFS, errno.EMSGSIZE)
        return True

    def _make_up(self) -> None:
        with self._lock:
            if self._sender is None:
                self._sender = WakeupSender(lambda _messages: self._look_all())
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


def _tell(callback: Callback, message: str | None) -> None:
    try:
        callback(message)
    except Exception:
        log.exception("a listener for wake-ups failed")
