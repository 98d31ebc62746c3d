"""Gives up on a server that takes a statement and never answers: a black hole, a half-open connection, a hung disk.

No setting of the socket helps there, since the other end's kernel goes on acknowledging. One thread for all
connections of an engine looks at deadlines. When one has passed it first asks the server to cancel, which ends a
statement that is only slow and leaves no backend behind; if that brings no answer either, it shuts the socket down,
and whoever waits there, thread or event loop, meets a broken connection like any other.
"""

from __future__ import annotations

import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fencerow.db.service import Service

log = logging.getLogger("fencerow.db")

READ_AGAIN_S = 0.01  # until a socket that broke is read once more
LOOK_S = 1.0  # until one is tried again that could not be given up
CANCEL_S = 1.0  # what a cancel may take before the socket is shut
OVERRUN_S = LOOK_S + CANCEL_S + 0.5  # how long after its limit a wait has ended, at the latest


class Watched:
    """One connection while it is in use or at hand; `busy` before each wait for the server, `rest` after it.

    Holds a duplicate of the socket's descriptor: the driver may close its own at any moment, and the number
    would then belong to somebody else.
    """

    __slots__ = ("_cancel", "_dog", "_fd", "_was_broken", "due", "given_up", "limit_s")

    def __init__(self, dog: Watchdog, fd: int, limit_s: float, cancel: Callable[[], None] | None) -> None:
        self._dog = dog
        self._fd = os.dup(fd)
        self.limit_s = limit_s
        self._cancel = cancel
        self._was_broken = False
        self.due = math.inf
        # Called from any thread when its socket was shut: an event loop may look no more at one that broke.
        self.given_up: Callable[[], None] | None = None

    @property
    def descriptor(self) -> int:
        """The duplicate, until `close`."""
        return self._fd

    def busy(self) -> None:
        """The server has a whole limit's time to answer from now on."""
        self.due = time.monotonic() + self.limit_s

    def rest(self) -> None:
        """Nothing is expected of the server."""
        self.due = math.inf

    def abandon(self) -> None:
        """Give the server up now, if it is in use still. From any thread."""
        self._dog.abandon(self)

    def lose_patience(self) -> None:
        """The next step of giving up."""
        if is_readable(self._fd) and not self._was_broken:
            self._was_broken = is_broken(
                self._fd
            )  # nothing more will come: it is read by the next limit, or never
            self.busy()  # the answer is there; it is our own code that does not come to reading it
            return
        if self.cancel():
            self.due = time.monotonic() + CANCEL_S
            return
        self.due = math.inf
        if self.shut():
            log.warning("PostgreSQL did not answer for %g s; gave that connection up", self.limit_s)
        if self.given_up is not None:
            self.given_up()

    def cancel(self) -> bool:
        """Ask the server to stop what it does; false when that was asked before, or cannot be."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()
        return cancel is not None

    def shut(self) -> bool:
        """Shut the socket down; false when it was closed or reset already."""
        end = socket.socket(fileno=self._fd)  # no new descriptor: there may be none left
        end.setblocking(False)  # as the driver has it, whatever time-out the application gives to new ones
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False
        finally:
            end.detach()
        return True

    def begin(self) -> None:
        """It is in use from now on, until `end`; it may be again."""
        self._dog.begin(self)

    def end(self) -> None:
        self.due = math.inf
        self._dog.end(self)

    def close(self) -> None:
        """It is not in use, and will not be again. It may be repeated."""
        self.given_up = None
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        try:
            self.begin()
        except BaseException:
            self.close()  # nobody would watch
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self.close()


class Watchdog:
    """The thread, started when something is first watched. `limit_s` is the longest wait for one answer."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.gave_up_at = -math.inf  # monotonic: other connections of that time may be as dead
        self._lock = threading.Lock()
        self._watched: set[Watched] = set()
        self._look = threading.Event()
        self._looks_at = -math.inf  # monotonic: when the thread looks next
        # Of those that began since it looked last, so that each of many that are short does not wake it.
        self._least_s = limit_s
        self._closed = False
        self._service = Service("fencerow-watchdog", self._turn)

    def watch(self, fd: int, cancel: Callable[[], None] | None, *, limit_s: float | None = None) -> Watched:
        """Watch a socket for a block. `cancel`, if any, asks the server to stop, without waiting for its answer."""
        return Watched(self, fd, self.limit_s if limit_s is None else limit_s, cancel)

    def begin(self, watched: Watched) -> None:
        with self._lock:
            self._service.need()
            self._watched.add(watched)
            self._least_s = min(self._least_s, watched.limit_s)
            if time.monotonic() + watched.limit_s < self._looks_at:
                self._look.set()

    def end(self, watched: Watched) -> None:
        with self._lock:  # nobody shuts a descriptor that is closed next
            self._watched.discard(watched)
            if self._closed:
                self._look.set()

    def abandon(self, watched: Watched) -> None:
        """Shut one down now. Under the lock: nobody closes its descriptor meanwhile."""
        with self._lock:
            if watched in self._watched:
                watched.cancel()
                watched.shut()

    def close(self) -> None:
        """End the thread as soon as nothing is watched: whoever still waits for a server is given up in time."""
        with self._lock:
            self._closed = True
            is_idle = not self._watched
            self._look.set()
        if is_idle:
            self._service.join()

    def _turn(self) -> bool:
        if not self._is_wanted():
            return False
        self._look.wait(self._pause_s())
        return True

    def _is_wanted(self) -> bool:
        with self._lock:
            self._look.clear()
            if self._closed and not self._watched:
                self._service.leave()
                return False
            return True

    def _pause_s(self) -> float:
        """Lose patience where it is due; returns how long to sleep.

        A wait that begins meanwhile is due a whole limit later, so it need not wake us: we look no later than that.
        """
        with self._lock:
            now = time.monotonic()
            for watched in [each for each in self._watched if each.due <= now]:
                self.gave_up_at = now
                self._give_up(watched)
            least_s = min((self._least_s, *(each.limit_s for each in self._watched)))
            self._least_s = self.limit_s
            self._looks_at = min((now + least_s, *(each.due for each in self._watched)))
            return max(0.0, self._looks_at - now)

    def _give_up(self, watched: Watched) -> None:
        """One connection that cannot be given up keeps no other from it; its turn comes again."""
        try:
            watched.lose_patience()
        except Exception as error:
            log.warning("a silent connection could not be given up yet: %r", error)
            watched.due = min(watched.due, time.monotonic() + LOOK_S)


def is_readable(fd: int) -> bool:
    """Whether a socket has something to read, or was closed by the other end. Never waits."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def is_broken(fd: int) -> bool:
    """Whether nothing comes any more behind what a socket has to read. Never waits."""
    poll = select.poll()
    poll.register(fd, 0)  # of a broken connection it tells all the same
    return bool(poll.poll(0))
