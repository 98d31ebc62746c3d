"""Where in the user's code an action comes from: the innermost line that is neither a driver's nor ours."""

from __future__ import annotations

import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fencerow

AT_ITS_END = "at its end"  # what the worker does when the handler has returned
LIBRARIES = ("psycopg", "psycopg_pool", "psycopg2", "asyncpg", "aiosqlite", "sqlalchemy", "greenlet")


class Places:
    """Finds `file:line` for the handler that runs in this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder  # what is below it is shown relative to it
        self._foreign = tuple(_foreign())
        self.coroutine: types.CoroutineType[Any, Any, Any] | None = None  # of an async handler
        self.thread: int | None = None  # of a plain one

    def here(self) -> str:
        """The place that the running code was called from, seen from inside a driver."""
        for frames in (_up(inspect.currentframe()), self._awaiting(), self._in_thread()):
            for frame in frames:
                if self._is_theirs(frame.f_code.co_filename):
                    return self._shown(frame.f_code.co_filename, frame.f_lineno)
        return AT_ITS_END

    def of(self, error: BaseException) -> str | None:
        """The innermost line of the user's code that an error came through."""
        place = None
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if self._is_theirs(file):
                place = self._shown(file, trace.tb_lineno)
            trace = trace.tb_next
        return place

    def _awaiting(self) -> Iterator[types.FrameType]:
        """The frames of the handler's coroutine, from what it waits for outwards: work may run elsewhere for it."""
        found: list[types.FrameType] = []
        waiting: Any = self.coroutine
        while waiting is not None and getattr(waiting, "cr_frame", None) is not None:
            found.append(waiting.cr_frame)
            waiting = waiting.cr_await
        return reversed(found)

    def _in_thread(self) -> Iterator[types.FrameType]:
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        frame = frames.get(self.thread) if self.thread is not None else None
        return _up(frame)

    def _is_theirs(self, file: str) -> bool:
        return not file.startswith(self._foreign)

    def _shown(self, file: str, line: int) -> str:
        path = Path(file)
        try:
            path = path.relative_to(self._folder)
        except ValueError:
            pass
        return f"{path}:{line}"


def _up(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _foreign() -> Iterator[str]:
    yield "<"
    yield f"{Path(fencerow.__file__).parent}/"
    yield f"{Path(__file__).parents[1]}/"  # the proofs, wherever they are installed
    for key in ("stdlib", "platstdlib"):
        # Not what lies in site-packages below it: an application may be installed there.
        folder = Path(sysconfig.get_paths()[key])
        for part in folder.glob("*"):
            if part.name != "site-packages" and part.name != "dist-packages":
                yield f"{part}/" if part.is_dir() else str(part)
    for name in LIBRARIES:
        spec = find_spec(name)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield f"{place}/"
