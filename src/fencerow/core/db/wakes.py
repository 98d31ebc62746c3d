"""Wake-ups: hints that work is there or has ended. They may be lost; polling lies beneath.

A caller never waits for one: `wake` returns at once, and one background thread sends what has
gathered. An idle queue hears at once; while messages keep coming they go together, every few milliseconds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from fencerow.core.db.service import Service

log = logging.getLogger("fencerow.wakes")

# Between two sends. A stream of submits would otherwise pay for a NOTIFY each, in a thread that contends with theirs.
REST_S_MIN = 0.001
REST_S_MAX = 0.010


class LocalWakes:
    """Listeners inside this process."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[str | None], None]] = []
        self._lock = threading.Lock()

    def wake(self, messages: list[str]) -> None:
        for callback in tuple(self._listeners):
            for message in messages:
                _tell(callback, message)

    def missed(self) -> None:
        """Say that some may have been missed: everybody looks for himself."""
        for callback in tuple(self._listeners):
            _tell(callback, None)

    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
        with self._lock:
            self._listeners = [*self._listeners, callback]
        return lambda: self._forget(callback)

    def _forget(self, callback: Callable[[str | None], None]) -> None:
        with self._lock:
            self._listeners = [known for known in self._listeners if known is not callback]


class Sender:
    """Sends messages from one background thread, what gathers meanwhile together, each message once.

    After each send it rests: a moment, and longer while something has always gathered by its end.
    """

    def __init__(self, send: Callable[[list[str]], None]) -> None:
        self._send = send
        self._waiting: dict[str, None] = {}
        self._changed = threading.Condition()
        self._service = Service("fencerow-wakes", self._turn)
        self._busy = False
        self._closed = False
        self._resting = False
        self._hurried = 0  # how many wait in `flush`
        self._rest_s = 0.0

    def post(self, messages: list[str]) -> None:
        with self._changed:
            if self._closed:
                return
            self._waiting.update(dict.fromkeys(messages))
            try:
                self._service.need()
            except (
                RuntimeError
            ) as error:  # no thread to be had; what is told of is committed, and this is a hint
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
                self._changed.notify_all()
        return True

    def _next(self) -> list[str] | None:
        with self._changed:
            self._rest()
            while not self._waiting and not self._closed:
                self._changed.wait()
            if not self._waiting:
                return None
            batch, self._waiting = list(self._waiting), {}
            self._busy = True
            return batch

    def _rest(self) -> None:
        """Let messages gather, unless somebody flushes."""
        until = time.monotonic() + self._rest_s
        self._resting = True
        while not self._closed and not self._hurried and (left := until - time.monotonic()) > 0:
            self._changed.wait(left)
        self._resting = False
        self._rest_s = min(2 * self._rest_s or REST_S_MIN, REST_S_MAX) if self._waiting else REST_S_MIN


def _tell(callback: Callable[[str | None], None], message: str | None) -> None:
    try:
        callback(message)
    except Exception:
        log.exception("a listener for wake-ups failed")
