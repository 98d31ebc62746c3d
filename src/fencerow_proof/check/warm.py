"""The process of which the starters of checks are forked.

To start Python and import all of ours for each check took more of a processor than most of what it does then.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from fencerow_proof.check.wire import Channel, End, Over, Start, Started


class Warm:
    """A process that forks starters, until it is closed or this process ends. Any thread may ask."""

    def __init__(self, log: Path) -> None:
        """Start it; `log` gets what it says, such as why it cannot import."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        with theirs, log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fencerow_proof.check._warm", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
                pass_fds=[theirs.fileno()],
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_here(self) -> bool:
        """Whether it lives and is this process's own: a fork shares the connection and must not use it."""
        return self._owner == os.getpid() and self._process.poll() is None

    def start(self, order: Start) -> int:
        """Fork a starter; returns its process id. Call `end` with that, once.

        Raises:
            ConnectionError: the warm process has ended.
        """
        answer = self._asked(order)
        assert isinstance(answer, Started)
        return answer.pid

    def end(self, pid: int) -> None:
        """End a starter, wherever it is. When the warm process has ended, the starter ends with its own connection."""
        try:
            self._asked(End(pid))
        except ConnectionError:
            pass

    def close(self) -> None:
        """Let it end, and wait for that."""
        self._channel.close()
        if self._owner == os.getpid():
            self._process.wait()

    def _asked(self, message: Start | End) -> Started | Over:
        with self._lock:
            self._channel.send(message)
            answer = self._channel.heard_from_process()
        if not isinstance(answer, Started | Over):
            raise ConnectionError("the warm process ended without an answer")
        return answer


_made: Warm | None = None
_making = threading.Lock()


def warm(log: Path) -> Warm:
    """The warm process of this one, started when it is first wanted and when it has ended."""
    global _made
    with _making:
        if _made is None or not _made.is_here:
            if _made is not None:
                _made.close()
                atexit.unregister(_made.close)
            _made = Warm(log)
            atexit.register(_made.close)
        return _made
