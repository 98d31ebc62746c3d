"""Which frames of a traceback are worth a reader's time: those of the user's code, and where the error was raised."""

from __future__ import annotations

from pathlib import Path
from traceback import FrameSummary, TracebackException

from fencerow.core.errors import FencerowError

PACKAGE = Path(__file__).parents[2]
OURS = f"{PACKAGE}/"
# They stand between the user's middleware and the handler that it wraps, and say nothing to either.
CALLING = frozenset(
    str(PACKAGE / each)
    for each in (
        "core/worker/calling.py",
        "core/worker/on_loop.py",
        "db/driven.py",
        "db/threads.py",
        "db/strikes.py",
    )
)


def trim(found: TracebackException, error: BaseException) -> None:
    """Leave out the frames that only called the user's code, in the error and in all that it came from.

    Our frames stay below the user's, where the user called us. Where all are ours they stay too, because the error is
    a fault of ours; but an error of our own says in its text all that the user can know.
    """
    kept = _kept(found.stack)
    if kept or isinstance(error, FencerowError):
        found.stack[:] = kept
    if not found.stack:
        found.stack = None  # type: ignore[assignment]  # then no header stands above nothing
    pairs = [(found.__cause__, error.__cause__), (found.__context__, error.__context__)]
    if isinstance(error, BaseExceptionGroup):
        pairs += zip(found.exceptions or (), error.exceptions, strict=False)
    for its_found, its_error in pairs:
        if its_found is not None and its_error is not None:
            trim(its_found, its_error)


def _kept(frames: list[FrameSummary]) -> list[FrameSummary]:
    theirs = [at for at, frame in enumerate(frames) if not frame.filename.startswith(OURS)]
    if not theirs:
        return []
    first, last = theirs[0], theirs[-1]
    return [
        frame
        for at, frame in enumerate(frames)
        if at >= first and (at > last or frame.filename not in CALLING)
    ]
