"""The pulse of a worker process: a thread that says every second how the worker is.

It needs the interpreter and nothing else. Code that keeps the interpreter's lock stops it: then silence is the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fencerow.core.worker.vitals import Phase, Vitals
from fencerow.db.service import Service

BEAT_S = 1.0
EARLY_BEAT_S = 0.05  # until the worker has started: somebody waits for that
JOIN_S = 3.0


class Pulse:
    """Calls `tell` with what `look` finds, in a thread, while its block lasts; once more at its end."""

    def __init__(
        self, look: Callable[[], Vitals], tell: Callable[[Vitals], None], *, beat_s: float = BEAT_S
    ) -> None:
        self._look = look
        self._tell = tell
        self._beat_s = beat_s
        self._ended = threading.Event()
        self._service = Service("fencerow-pulse", self._turn, rest=self._ended.wait)

    def __enter__(self) -> Self:
        self._service.need()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._service.join(JOIN_S)

    def _turn(self) -> bool:
        vitals = self._look()
        self._tell(vitals)
        early = vitals.phase is Phase.STARTING
        if not self._ended.wait(min(self._beat_s, EARLY_BEAT_S if early else BEAT_S)):
            return True
        self._tell(self._look())  # a worker with nothing to do leaves between two beats
        return False
