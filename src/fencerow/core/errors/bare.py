"""A refusal without the frames of ours that it came through: they say nothing to whom it tells what to do."""

from __future__ import annotations

import os
from pathlib import Path
from traceback import walk_tb
from typing import TypeVar

from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.database import DatabaseError

PACKAGE = f"{Path(__file__).parents[2]}/"
STANDARD = f"{Path(os.__file__).parent}/"

E = TypeVar("E", bound=FencerowError)


def bare(error: E) -> E:
    """The error, to be raised again where the user called us: its traceback ends there.

    It keeps all frames where one of them is not ours, for then the user's own code stands between; and where the
    database is the trouble, because a report of that asks which statement it was. What it was caused by is kept.
    """
    files = (frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__))
    if isinstance(error, DatabaseError) or not all(map(_says_nothing, files)):
        return error
    return error.with_traceback(None)


def _says_nothing(file: str) -> bool:
    return file.startswith((PACKAGE, "<frozen")) or (
        file.startswith(STANDARD) and "site-packages" not in file
    )
