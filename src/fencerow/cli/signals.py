"""Signals that reach a program whose event loop is blocked.

The handlers of asyncio are called by the loop, and those of Python between two instructions of the main thread: neither
comes while it sleeps in C. A descriptor that the interpreter writes to at once is read by a thread. Both ways are
listened to, since any library may take the descriptor for itself; each signal is told once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

from fencerow.db.socket_pairs import socket_pair


class Signals:
    """Calls back with the name of each of these signals while its block lasts, from any thread.

    Entered in the main thread.
    """

    def __init__(self, numbers: Sequence[int], callback: Callable[[str], None]) -> None:
        self._numbers = frozenset(numbers)
        self._callback = callback
        self._lock = threading.RLock()  # a handler may come while its own thread is in here
        self._caught = self._read = self._told = 0
        self._latest = 0

    def __enter__(self) -> Self:
        self._here, self._there = socket_pair()
        self._there.setblocking(False)
        self._former_fd = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)
        self._former: dict[int, Any] = {each: signal.signal(each, self._catch) for each in self._numbers}
        self._thread = threading.Thread(target=self._run, name="fencerow-signals", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)
        latest_fd = signal.set_wakeup_fd(self._former_fd)
        if latest_fd != self._there.fileno():
            signal.set_wakeup_fd(latest_fd)  # somebody has taken it for himself since
        self._there.close()
        self._thread.join()
        self._here.close()

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        with self._lock:
            self._caught += 1
            self._latest = number
            self._tell()

    def _run(self) -> None:
        while heard := self._here.recv(64):
            with self._lock:
                ours = [each for each in heard if each in self._numbers]
                self._read += len(ours)
                self._latest = ours[-1] if ours else self._latest
                self._tell()

    def _tell(self) -> None:
        while self._told < max(self._caught, self._read):
            self._told += 1
            self._callback(signal.Signals(self._latest).name)
